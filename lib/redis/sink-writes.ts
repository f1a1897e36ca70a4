/**
 * The writes of the sink in Redis: each is one question to one script, with what the sink knows of the claim's fences.
 */
import { OptionError } from "../errors.js";
import type {
  AdvanceAnswer,
  CallOptions,
  CommitAllAnswer,
  CommitAllRequest,
  CommitAnswer,
  CommitRequest,
  InvalidateAnswer,
  ResultChange,
  WriteIdentity,
} from "../sink.js";
import type { Asked } from "./ask.js";
import type { Limits, ScriptRequest, ScriptValues } from "./attempt.js";
import type { DurabilityOptions } from "./durability.js";
import type { FencePolicy } from "./fence-policy.js";
import type { Proof } from "./fenced-write.js";
import type { HeldFences } from "./held-fences.js";
import { advanceAnswer, commitAllAnswer, commitAnswer, invalidateAnswer } from "./replies.js";
import { identityOf, keysOf, modeOf, ttlOf } from "./request-form.js";
import { type CompressOptions, storedValue } from "./value-form.js";
import { WriteAsking, type Writing } from "./write-asking.js";

export interface SinkWritesOptions {
  connection: Asked<ScriptRequest>;
  fences: HeldFences;
  policy: FencePolicy;
  /** Whole milliseconds as text; empty: fences do not expire. */
  retentionMs: string;
  /** Values from so many bytes on are put at a key of their own first, and moved by the script. */
  stageFromBytes: number;
  compress: CompressOptions | undefined;
  durability: DurabilityOptions | undefined;
  nextOrder: () => string;
  limitsOf: (call?: CallOptions) => Limits;
}

const stale = (_key: string, fenceText: string) => ({ outcome: "stale", fenceText }) as const;

export class SinkWrites {
  readonly #asking: WriteAsking;

  constructor(readonly options: SinkWritesOptions) {
    this.#asking = new WriteAsking({ ...options, raiseAll: () => this.raiseAll() });
  }

  advance(identity: WriteIdentity, limits: Limits): Promise<AdvanceAnswer> {
    return this.#asking.write(this.#advancing(identity), limits);
  }

  async commit(request: CommitRequest, limits: Limits): Promise<CommitAnswer> {
    const { key } = request;
    const { stageFromBytes, compress } = this.options;
    const [token, job, holder] = identityOf(request);
    const [ttlMs, mode] = [ttlOf(request), modeOf(request)];
    const stored = storedValue(request.value, compress);
    const { bytes, encoding, digest } = stored instanceof Promise ? await stored : stored;
    const stage = bytes.length >= stageFromBytes ? bytes : undefined;
    const known = this.#known(key);
    const values = (proof: Proof, digestText: string) => {
      const value = stage === undefined ? bytes : "";
      const said = [token, job, value, digestText, ttlMs, mode, holder];
      return [...said, ...withoutEnd([...known(proof), encoding, this.#touch])];
    };
    return this.#asking.write<CommitAnswer>(
      {
        ...{ identity: request, script: "commitResult", keys: keysOf(key), stage, stale },
        values: (proofOf) => {
          const proof = proofOf(key);
          if (typeof digest === "string") return values(proof, digest);
          return digest.then((text) => values(proof, text));
        },
        said: (reply) => commitAnswer(reply, key),
      },
      limits,
    );
  }

  async commitAll(request: CommitAllRequest, limits: Limits): Promise<CommitAllAnswer> {
    const { results, guards = [] } = request;
    const { retentionMs, nextOrder, compress } = this.options;
    const keys = [...guards, ...results.map(({ key }) => key)];
    if (results.length === 0 || new Set(keys).size < keys.length) {
      throw new OptionError("results must be at least one, and name each key once, guards too");
    }
    const [token, job, holder] = identityOf(request);
    const policies = new Set(keys.map((key) => this.#policyOf(key)));
    if (policies.size > 1) {
      throw new OptionError("results must be all observed or all enforced; see the sink's policy");
    }
    const [policy = ""] = policies;
    const claim = [token, job, holder, modeOf(request), nextOrder(), retentionMs, policy];
    const written = await Promise.all(results.map((change) => changeOf(change, compress)));
    const changes = [...guards.map(() => GUARD), ...written];
    return this.#asking.write<CommitAllAnswer>(
      {
        ...{ identity: request, script: "commitResults", keys: keys.flatMap(keysOf) },
        values: (proofOf) => {
          const each = changes.flatMap((change, index) => {
            const { raised, alive } = proofOf(keys[index] ?? "");
            return [...change, flag(raised), alive];
          });
          return [...claim, this.#touch, ...each];
        },
        said: (reply) => commitAllAnswer(reply, keys, guards.length),
        stale: (key, fenceText) => ({ outcome: "stale", fenceText, key }),
      },
      limits,
    );
  }

  async invalidate(identity: WriteIdentity, limits: Limits): Promise<InvalidateAnswer> {
    const { key } = identity;
    const claim = identityOf(identity);
    const known = this.#known(key);
    return this.#asking.write<InvalidateAnswer>(
      {
        ...{ identity, script: "invalidateResult", keys: keysOf(key), stale },
        values: (proofOf) => [...claim, ...withoutEnd([...known(proofOf(key)), this.#touch])],
        said: (reply) => invalidateAnswer(reply, key),
      },
      limits,
    );
  }

  /** See {@link WriteAsking.raiseAll}. */
  raiseAll(connection?: Asked<ScriptRequest>): Promise<void> {
    return this.#asking.raiseAll((identity) => this.#advancing(identity), connection);
  }

  #advancing(identity: WriteIdentity): Writing<AdvanceAnswer> {
    const { key } = identity;
    const claim = identityOf(identity);
    return {
      ...{ identity, script: "advanceFence", keys: keysOf(key), stale },
      values: (proofOf) => {
        const known = [proofOf(key).alive, this.#policyOf(key), this.#touch];
        return [...claim, ...withoutEnd(known)];
      },
      said: (reply) => advanceAnswer(reply, key),
    };
  }

  /** What every write of a result says after its own arguments; its order is that of the call. */
  #known(key: string): (proof: Proof) => string[] {
    const { retentionMs, nextOrder } = this.options;
    const order = nextOrder();
    return ({ raised, alive }) => [order, flag(raised), alive, retentionMs, this.#policyOf(key)];
  }

  /** A reply that changes nothing has to write something where it is waited for. */
  get #touch(): string {
    return flag(this.options.durability !== undefined);
  }

  /** Empty for `enforce`, so that it need not be sent. */
  #policyOf(key: string): string {
    const mode = this.options.policy.modeOf(key);
    return mode === "enforce" ? "" : mode;
  }
}

/** Value, digest, time to live and encoding of a key that is only looked at. */
const GUARD: ScriptValues = ["", "guard", "", ""];

/** Value, digest, time to live and encoding. */
async function changeOf(
  change: ResultChange,
  compress: CompressOptions | undefined,
): Promise<ScriptValues> {
  if (change.value === undefined) return ["", "", "", ""];
  const { bytes, encoding, digest } = await storedValue(change.value, compress);
  return [bytes, await digest, ttlOf(change), encoding];
}

function flag(set: boolean): string {
  return set ? "1" : "";
}

/** Arguments at the end that are empty need not be sent. */
function withoutEnd(values: string[]): string[] {
  const end = values.findLastIndex((value) => value !== "");
  return values.slice(0, end + 1);
}
