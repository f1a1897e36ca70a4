/**
 * A store in memory that answers as the Redis sink does, for deterministic simulations: each call is one atomic step,
 * and the time is an argument. Arguments are taken to be what the sink lets through; nothing is checked here.
 */
import { digestOf, storedHolder, storedJob } from "../../lib/redis/stored-form.js";
import type {
  AdvanceAnswer,
  CommitAnswer,
  CommitRequest,
  FenceRecord,
  PresentResult,
  ReadAnswer,
  WriteIdentity,
} from "../../lib/sink.js";

/** A write that was accepted. */
export interface AcceptedWrite {
  key: string;
  tokenText: string;
  /** The value as text; bytes that are not UTF-8 are replaced. */
  value: string;
  revision: number;
}

/** A text stands for its bytes in UTF-8: most values of a simulation are texts, and stay cheap to compare. */
type Value = string | Buffer;

/** What is at the result key. */
interface StoredValue {
  readonly value: Value;
  /** The last millisecond at which it is there; Infinity when it does not expire. */
  readonly expiresAtMs: number;
}

interface Committed {
  readonly tokenText: string;
  readonly value: Value;
  readonly revision: number;
  readonly committedAtMs: number;
  readonly holder: string;
}

/** What is in the fence. It is replaced as a whole, never changed. */
interface StoredFence {
  readonly tokenText: string;
  /** As it was given: two jobs have the same stored form only when they are the same. */
  readonly job: string;
  readonly state: "open" | "committed";
  readonly committed: Committed | undefined;
  readonly staleCount: number;
  readonly lastStale: { readonly tokenText: string; readonly atMs: number } | undefined;
}

export class SimulatedStore {
  /** Every accepted write, in the store's own order; a stranger's deeds take nothing from it. */
  readonly accepted: AcceptedWrite[] = [];
  readonly #values = new Map<string, StoredValue>();
  readonly #fences = new Map<string, StoredFence>();

  advanceFence({ key, job, token }: WriteIdentity, nowMs: number): AdvanceAnswer {
    const fence = this.#fences.get(key);
    const refusal = refusalOf(fence, job, token.text);
    if (refusal !== undefined) return refusal;
    const isThere = this.#valueAt(key, nowMs) !== undefined;
    const present = isThere && fence?.committed ? presentOf(fence.committed, nowMs) : undefined;
    if (fence?.tokenText === token.text) return { outcome: "current", present };
    this.#fences.set(key, { ...(fence ?? NO_FENCE), tokenText: token.text, job, state: "open" });
    return { outcome: "advanced", present };
  }

  commitResult(request: CommitRequest, nowMs: number): CommitAnswer {
    const refusal = this.compare(request);
    if (refusal === undefined) return this.write(request, nowMs);
    if (refusal.outcome === "stale") this.#countStale(request, nowMs);
    return refusal;
  }

  /** The first half of `commitResult`: what it refuses with, or undefined when it is to write. Changes nothing. */
  compare({ key, job, token, value, mode = "once" }: CommitRequest): CommitAnswer | undefined {
    const fence = this.#fences.get(key);
    const refusal = refusalOf(fence, job, token.text);
    if (refusal !== undefined) return refusal;
    const committed = committedUnder(token.text, fence);
    if (committed === undefined) return undefined;
    if (isSame(committed.value, value)) {
      return { outcome: "duplicate", revision: committed.revision };
    }
    return mode === "once" ? { outcome: "conflict" } : undefined;
  }

  /** The second half: writes value and fence, whatever the fence says. */
  write(request: CommitRequest, nowMs: number): CommitAnswer {
    const { key, job, token, ttlMs = Number.POSITIVE_INFINITY, holder = "" } = request;
    const fence = this.#fences.get(key);
    const tokenText = token.text;
    const value = copyOf(request.value);
    const revision = (committedUnder(tokenText, fence)?.revision ?? 0) + 1;
    const by = storedHolder(holder);
    const committed = { tokenText, value, revision, committedAtMs: nowMs, holder: by };
    this.#fences.set(key, {
      ...(fence ?? NO_FENCE),
      tokenText,
      job,
      state: "committed",
      committed,
    });
    this.#values.set(key, { value, expiresAtMs: nowMs + ttlMs });
    this.accepted.push({ key, tokenText, value: value.toString(), revision });
    return { outcome: "committed", revision };
  }

  readResult(key: string, nowMs: number): ReadAnswer {
    const value = this.#valueAt(key, nowMs);
    const fence = this.#fences.get(key);
    const committed = fence?.committed;
    return {
      key,
      value: value === undefined ? undefined : Buffer.from(value),
      fence: fence && recordOf(fence, nowMs),
      matches: committed && value !== undefined && isSame(value, committed.value),
    };
  }

  /** A stranger's plain SET: another value, no time to live, and the fence knows nothing of it. */
  setValue(key: string, value: Uint8Array | string): void {
    this.#values.set(key, { value: copyOf(value), expiresAtMs: Number.POSITIVE_INFINITY });
  }

  /** A stranger's DEL of the value; the fence stays. */
  deleteValue(key: string): void {
    this.#values.delete(key);
  }

  /** A stranger's PEXPIREAT of the value, which is there until then, and gone at once when that is past. */
  expireAt(key: string, atMs: number, nowMs: number): void {
    const value = this.#valueAt(key, nowMs);
    if (value === undefined || atMs <= nowMs) this.#values.delete(key);
    else this.#values.set(key, { value, expiresAtMs: atMs });
  }

  /** A stranger's FLUSHALL: every value and every fence is gone. */
  forget(): void {
    this.#values.clear();
    this.#fences.clear();
  }

  #valueAt(key: string, nowMs: number): Value | undefined {
    const stored = this.#values.get(key);
    return stored !== undefined && nowMs <= stored.expiresAtMs ? stored.value : undefined;
  }

  /** Counts a refused commit; a refused advance is not counted. */
  #countStale({ key, token }: CommitRequest, nowMs: number): void {
    const fence = this.#fences.get(key);
    if (fence === undefined) return;
    const lastStale = { tokenText: token.text, atMs: nowMs };
    this.#fences.set(key, { ...fence, staleCount: fence.staleCount + 1, lastStale });
  }
}

const NO_FENCE = { committed: undefined, staleCount: 0, lastStale: undefined } as const;

/** What both writes are refused with, in this order; text order is the tokens' order. */
function refusalOf(fence: StoredFence | undefined, job: string, tokenText: string) {
  if (fence === undefined) return undefined;
  if (fence.job !== job) return { outcome: "foreign", owner: storedJob(fence.job) } as const;
  if (tokenText >= fence.tokenText) return undefined;
  return { outcome: "stale", fenceText: fence.tokenText } as const;
}

/** What was committed under this very token; undefined when the fence is elsewhere or open. */
function committedUnder(tokenText: string, fence: StoredFence | undefined): Committed | undefined {
  const isIt = fence?.tokenText === tokenText && fence.state === "committed";
  return isIt ? fence.committed : undefined;
}

function presentOf(committed: Committed, nowMs: number): PresentResult {
  const { tokenText, revision, committedAtMs } = committed;
  return { tokenText, revision, ageMs: Math.max(0, nowMs - committedAtMs) };
}

function recordOf(fence: StoredFence, nowMs: number): FenceRecord {
  const { tokenText, job, state, committed, staleCount, lastStale } = fence;
  return {
    tokenText,
    job: storedJob(job),
    state,
    committed: committed && {
      ...presentOf(committed, nowMs),
      digest: digestOf(Buffer.from(committed.value)),
      committedAtMs: committed.committedAtMs,
      holder: committed.holder,
    },
    staleCount,
    lastStale: lastStale && { ...lastStale },
  };
}

function copyOf(value: Uint8Array | string): Value {
  return typeof value === "string" ? value : Buffer.from(value);
}

function isSame(a: Value, b: Uint8Array | string): boolean {
  if (a === b) return true;
  if (typeof a === "string" && typeof b === "string") return false;
  return Buffer.from(a).equals(Buffer.from(b));
}
