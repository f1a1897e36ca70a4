/**
 * The writes of the sink in Redis: each is one question to one script, with what the sink knows of the claim's fences.
 */
import { OptionError } from "../errors.js";
import type {
  AdvanceAnswer,
  CallOptions,
  ClaimIdentity,
  CommitAllAnswer,
  CommitAllRequest,
  CommitAnswer,
  CommitRequest,
  InvalidateAnswer,
  ResultChange,
  WriteIdentity,
} from "../sink.js";
import { type Asked, ask } from "./ask.js";
import type { CommandRequest, Limits, ScriptRequest } from "./attempt.js";
import type { FencePolicy } from "./fence-policy.js";
import { FencedWrite, type Proof, type Said } from "./fenced-write.js";
import type { HeldFences, RaisedAgain } from "./held-fences.js";
import { advanceAnswer, commitAllAnswer, commitAnswer, invalidateAnswer } from "./replies.js";
import { bytesOf, identityOf, keysOf, modeOf, ttlOf } from "./request-form.js";
import type { ScriptName } from "./script-files.js";
import { digestOf } from "./stored-form.js";

export interface SinkWritesOptions {
  connection: Asked<ScriptRequest | CommandRequest>;
  fences: HeldFences;
  policy: FencePolicy;
  /** Whole milliseconds as text; empty: fences do not expire. */
  retentionMs: string;
  nextOrder: () => string;
  limitsOf: (call?: CallOptions) => Limits;
}

/** One write: what it sends for what is known, and what a reply to it says. */
interface Writing<Answer> {
  identity: ClaimIdentity;
  script: ScriptName;
  keys: string[];
  values: (proofOf: (key: string) => Proof) => (string | Buffer)[];
  said: (reply: unknown) => Said<Answer>;
  stale: (key: string, fenceText: string) => Answer;
}

const stale = (_key: string, fenceText: string) => ({ outcome: "stale", fenceText }) as const;

export class SinkWrites {
  #raising: Promise<void> | undefined;

  constructor(readonly options: SinkWritesOptions) {}

  advance(identity: WriteIdentity, limits: Limits): Promise<AdvanceAnswer> {
    return this.#write(this.#advancing(identity), limits);
  }

  async commit(request: CommitRequest, limits: Limits): Promise<CommitAnswer> {
    const { key } = request;
    const { retentionMs, nextOrder } = this.options;
    const [token, job, holder] = identityOf(request);
    const value = bytesOf(request.value);
    const said = [token, job, value, digestOf(value), ttlOf(request), modeOf(request), holder];
    const order = nextOrder();
    return this.#write<CommitAnswer>(
      {
        ...{ identity: request, script: "commitResult", keys: keysOf(key), stale },
        values: (proofOf) => {
          const { raised, alive } = proofOf(key);
          const known = [order, flag(raised), alive, retentionMs, this.#policyOf(key)];
          return [...said, ...withoutEnd(known)];
        },
        said: (reply) => commitAnswer(reply, key) as Said<CommitAnswer>, // nothing is staged here
      },
      limits,
    );
  }

  async commitAll(request: CommitAllRequest, limits: Limits): Promise<CommitAllAnswer> {
    const { results } = request;
    const { retentionMs, nextOrder } = this.options;
    const keys = results.map(({ key }) => key);
    if (keys.length === 0 || new Set(keys).size < keys.length) {
      throw new OptionError("results must be at least one, and name each key once");
    }
    const [token, job, holder] = identityOf(request);
    const policies = new Set(keys.map((key) => this.#policyOf(key)));
    if (policies.size > 1) {
      throw new OptionError("results must be all observed or all enforced; see the sink's policy");
    }
    const [policy = ""] = policies;
    const claim = [token, job, holder, modeOf(request), nextOrder(), retentionMs, policy, ""];
    const changes = results.map(changeOf);
    return this.#write<CommitAllAnswer>(
      {
        ...{ identity: request, script: "commitResults", keys: keys.flatMap(keysOf) },
        values: (proofOf) => {
          const each = changes.flatMap((change, index) => {
            const { raised, alive } = proofOf(keys[index] ?? "");
            return [...change, flag(raised), alive];
          });
          return [...claim, ...each];
        },
        said: (reply) => commitAllAnswer(reply, keys),
        stale: (key, fenceText) => ({ outcome: "stale", fenceText, key }),
      },
      limits,
    );
  }

  async invalidate(identity: WriteIdentity, limits: Limits): Promise<InvalidateAnswer> {
    const { key } = identity;
    const { retentionMs, nextOrder } = this.options;
    const order = nextOrder();
    const claim = identityOf(identity);
    return this.#write<InvalidateAnswer>(
      {
        ...{ identity, script: "invalidateResult", keys: keysOf(key), stale },
        values: (proofOf) => {
          const { raised, alive } = proofOf(key);
          const known = [order, flag(raised), alive, retentionMs, this.#policyOf(key)];
          return [...claim, ...withoutEnd(known)];
        },
        said: (reply) => invalidateAnswer(reply, key),
      },
      limits,
    );
  }

  /**
   * Raises the fences of all claims again. Writes that find theirs gone at the same time wait for the same.
   *
   * @param connection the one to ask; default: the sink's
   */
  raiseAll(connection = this.options.connection): Promise<void> {
    this.#raising ??= this.options.fences
      .raiseAll((identity) => this.#raiseAgain(identity, connection))
      .finally(() => {
        this.#raising = undefined;
      });
    return this.#raising;
  }

  async #raiseAgain(
    identity: WriteIdentity,
    connection: Asked<ScriptRequest | CommandRequest>,
  ): Promise<RaisedAgain> {
    const writing = this.#advancing(identity);
    const write = this.#fencedWrite(writing);
    const question = this.#questionOf(writing, write);
    const { outcome } = await ask(connection, question, this.options.limitsOf());
    if (outcome !== "advanced") return "kept";
    return write.metFloor ? "compacted" : "lost";
  }

  #advancing(identity: WriteIdentity): Writing<AdvanceAnswer> {
    const { key } = identity;
    const claim = identityOf(identity);
    return {
      ...{ identity, script: "advanceFence", keys: keysOf(key), stale },
      values: (proofOf) => [...claim, ...withoutEnd([proofOf(key).alive, this.#policyOf(key)])],
      said: (reply) => advanceAnswer(reply, key),
    };
  }

  #write<Answer extends { outcome: string }>(
    writing: Writing<Answer>,
    limits: Limits,
  ): Promise<Answer> {
    const question = this.#questionOf(writing, this.#fencedWrite(writing));
    return ask(this.options.connection, question, limits);
  }

  #questionOf<Answer extends { outcome: string }>(
    { script, keys, values, said }: Writing<Answer>,
    write: FencedWrite<Answer>,
  ) {
    return {
      request: () => ({ script, keys, values: values((key) => write.proofOf(key)) }),
      writes: true,
      answerOf: (reply: unknown) => write.settle(said(reply)),
    };
  }

  #fencedWrite<Answer extends { outcome: string }>({ identity, stale: refuse }: Writing<Answer>) {
    const { fences } = this.options;
    const raiseAll = () => this.raiseAll();
    return new FencedWrite<Answer>({ identity, fences, raiseAll, stale: refuse });
  }

  /** Empty for `enforce`, so that it need not be sent. */
  #policyOf(key: string): string {
    const mode = this.options.policy.modeOf(key);
    return mode === "enforce" ? "" : mode;
  }
}

/** Value, digest, time to live and encoding. */
function changeOf(change: ResultChange): (string | Buffer)[] {
  if (change.value === undefined) return ["", "", "", ""];
  const value = bytesOf(change.value);
  return [value, digestOf(value), ttlOf(change), ""];
}

function flag(set: boolean): string {
  return set ? "1" : "";
}

/** Arguments at the end that are empty need not be sent. */
function withoutEnd(values: string[]): string[] {
  const end = values.findLastIndex((value) => value !== "");
  return values.slice(0, end + 1);
}
