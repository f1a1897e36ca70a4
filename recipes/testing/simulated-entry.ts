/**
 * One result with its fence and its floor, as a script finds them on a simulated keyspace, and what a write does there.
 */

import type { Reply } from "./script-call.js";
import {
  type FenceFields,
  faultIn,
  isMs,
  isShort,
  isToken,
  RESULT_FIELDS,
} from "./simulated-fence.js";
import type { SimulatedKeyspace } from "./simulated-keyspace.js";

/** What a claim sends with each write. */
export interface ClaimArguments {
  token: string;
  job: string;
  holder: string;
  order: string;
  raised: string;
  alive: string;
  retentionMs: string;
  policy: string;
  touch: string;
}

export const NO_ORDER = "0".repeat(16);

/** The name of the first argument that is not as it must be. */
export function faultInClaim(claim: ClaimArguments): string | undefined {
  const isFlag = (text: string) => text === "" || text === "1";
  if (!isShort(claim.job, 1)) return "job";
  if (!isShort(claim.holder)) return "holder";
  if (claim.order !== "" && !/^\d{16}$/.test(claim.order)) return "order";
  if (!isFlag(claim.raised)) return "raised";
  if (claim.alive !== "" && !isToken(claim.alive)) return "alive";
  if (claim.retentionMs !== "" && !isMs(claim.retentionMs)) return "retention";
  if (!["", "enforce", "observe"].includes(claim.policy)) return "policy";
  return isFlag(claim.touch) ? undefined : "touch";
}

export class SimulatedEntry {
  readonly fence: FenceFields | undefined;
  /** Why nothing can be done here, as the reply that says so. */
  readonly fault: Reply | undefined;

  constructor(
    readonly keyspace: SimulatedKeyspace,
    readonly keys: { result: string; fence: string; floor: string },
    readonly nowMs: number,
  ) {
    const kinds = [keys.result, keys.fence].map((key) => keyspace.typeOf(key, nowMs));
    const [kind = "none", fenceKind = "none"] = kinds;
    const fields = keyspace.hash(keys.fence, nowMs);
    this.fence = fields && Object.fromEntries(fields);
    const corrupt = fenceKind === "string" ? "type string" : this.fence && faultIn(this.fence);
    if (kind === "hash") this.fault = ["wrongtype", kind];
    else if (corrupt !== undefined) this.fault = ["corrupt", corrupt];
  }

  /** Whether there is a value. */
  get isThere(): boolean {
    return this.keyspace.typeOf(this.keys.result, this.nowMs) === "string";
  }

  /** What stands in the way of a claim's write: the fence, or where there is none the floor. */
  refusalOf({ token, job, raised, alive }: ClaimArguments): [string, ...string[]] | undefined {
    const { fence } = this;
    const stands = fence?.token ?? "";
    if (fence !== undefined) {
      if (fence.job !== job) return ["foreign", fence.job ?? ""];
      if (token < stands) return ["stale", stands];
      return raised === "1" && stands < token ? ["lost", stands] : undefined;
    }
    const floor = this.keyspace.string(this.keys.floor, this.nowMs)?.toString("latin1");
    if (floor !== undefined && !isToken(floor)) return ["corrupt", "floor"];
    if (floor !== undefined && token <= floor) {
      return alive === floor ? undefined : ["floor", floor];
    }
    return raised === "1" ? ["lost", ""] : undefined;
  }

  /** Counts a write that was refused or let through. */
  count(field: "stale" | "observed", token: string): void {
    if (this.fence === undefined) return;
    const counted = String(Number(this.fence[field] ?? "0") + 1);
    const last = { lastStaleToken: token, lastStaleAt: String(this.nowMs) };
    this.keyspace.setFields(this.keys.fence, { [field]: counted, ...last }, this.nowMs);
  }

  /** Token, revision and time of the result that is there, or three empty texts. */
  get present(): [string, string, string] {
    const { fence } = this;
    const token = fence?.state === "committed" ? fence.token : fence?.committedToken;
    if (!this.isThere || token === undefined) return ["", "", ""];
    return [token, fence?.revision ?? "", fence?.committedAt ?? ""];
  }

  /** Raises the fence; what is there stays that of the older token. */
  raise({ token, job, holder }: ClaimArguments): void {
    const { fence } = this;
    const committed = fence?.state === "committed" && {
      committedToken: fence.token ?? "",
      committedHolder: fence.holder ?? "",
    };
    this.#changeFence({ token, job, state: "open", holder, order: NO_ORDER, ...committed });
  }

  /** Writes a value with the fence that describes it. */
  commit(claim: ClaimArguments, result: CommittedResult): void {
    const { token, job, holder, retentionMs } = claim;
    const { value, digest, revision, ttlMs, encoding } = result;
    const isEncoded = encoding !== "" || this.fence?.encoding !== undefined;
    this.#changeFence({
      ...{ token, job, state: "committed", holder, order: this.#orderOf(claim), digest, revision },
      committedAt: String(this.nowMs),
      ...(isEncoded && { encoding }),
    });
    if (retentionMs !== "" && ttlMs !== "") this.#expireFence(Number(retentionMs) + Number(ttlMs));
    this.put(value, ttlMs);
  }

  /** Deletes the value, and what the fence says of it. */
  invalidate(claim: ClaimArguments): void {
    const { token, job, holder, retentionMs } = claim;
    this.#changeFence({ token, job, state: "open", holder, order: this.#orderOf(claim) });
    this.keyspace.removeFields(this.keys.fence, RESULT_FIELDS, this.nowMs);
    if (retentionMs !== "") this.#expireFence(Number(retentionMs));
    this.keyspace.delete(this.keys.result);
  }

  put(value: Buffer, ttlMs: string): void {
    const expiresAtMs = ttlMs === "" ? Number.POSITIVE_INFINITY : this.nowMs + Number(ttlMs);
    this.keyspace.setString(this.keys.result, value, expiresAtMs);
  }

  #orderOf({ token, order }: ClaimArguments): string {
    if (order !== "") return order;
    return (this.fence?.token === token ? this.fence.order : undefined) ?? NO_ORDER;
  }

  #changeFence(fields: Record<string, string>): void {
    this.keyspace.setFields(this.keys.fence, fields, this.nowMs);
    this.#expireFence(Number.POSITIVE_INFINITY);
  }

  #expireFence(afterMs: number): void {
    this.keyspace.expireAt(this.keys.fence, this.nowMs + afterMs, this.nowMs);
  }
}

export interface CommittedResult {
  value: Buffer;
  digest: string;
  revision: string;
  ttlMs: string;
  encoding: string;
}
