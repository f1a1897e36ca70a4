/**
 * A simulated sink with the semantics of the Lua scripts: one atomic step at the store, and a way there and back on
 * which messages are late or lost. Lost replies are asked for again with the same token, as the Redis sink does.
 */
import { createHash } from "node:crypto";
import { SinkOutcomeUnknownError } from "../../lib/errors.js";
import type {
  AdvanceAnswer,
  CommitAnswer,
  CommitRequest,
  ReadAnswer,
  Sink,
  WriteIdentity,
} from "../../lib/sink.js";
import type { SimulatedProcess } from "./simulated-process.js";

interface Stored {
  fence: string;
  job: string;
  state: "open" | "committed";
  committed: { token: string; digest: string; value: string; atMs: number } | undefined;
}

/** How the store compares; the broken ways are there so that the checks can be seen to fail. */
export type Compares = "as it must" | "not at all" | "newer only" | "checks first, writes later";

export class SimulatedStore {
  readonly keys = new Map<string, Stored>();
  /** Every accepted write, in the store's own order. */
  readonly accepted: { key: string; token: string; value: string }[] = [];

  constructor(readonly compares: Compares) {}

  advance({ key, job, token }: WriteIdentity, nowMs: number): AdvanceAnswer {
    const stored = this.keys.get(key);
    if (stored && stored.job !== job) return { outcome: "foreign", owner: stored.job };
    if (stored && token.text < stored.fence && this.compares !== "not at all") {
      return { outcome: "stale", fenceText: stored.fence };
    }
    const present = stored?.committed && {
      tokenText: stored.committed.token,
      revision: 1,
      ageMs: nowMs - stored.committed.atMs,
    };
    if (stored?.fence === token.text) return { outcome: "current", present };
    const { committed } = stored ?? {};
    this.keys.set(key, { fence: token.text, job, state: "open", committed });
    return { outcome: "advanced", present };
  }

  /** The answer that a comparison gives now, or undefined when the write is to be accepted. */
  refuses({ key, job, token, value }: CommitRequest): CommitAnswer | undefined {
    const stored = this.keys.get(key);
    if (stored === undefined || this.compares === "not at all") return undefined;
    if (stored.job !== job) return { outcome: "foreign", owner: stored.job };
    const old =
      this.compares === "newer only" ? token.text <= stored.fence : token.text < stored.fence;
    if (old) return { outcome: "stale", fenceText: stored.fence };
    if (token.text !== stored.fence || stored.state === "open") return undefined;
    const same = stored.committed?.digest === digestOf(value);
    return same ? { outcome: "duplicate", revision: 1 } : { outcome: "conflict" };
  }

  write({ key, job, token, value }: CommitRequest, nowMs: number): CommitAnswer {
    const text = String(value);
    const committed = { token: token.text, digest: digestOf(value), value: text, atMs: nowMs };
    this.keys.set(key, { fence: token.text, job, state: "committed", committed });
    this.accepted.push({ key, token: token.text, value: text });
    return { outcome: "committed", revision: 1 };
  }
}

function digestOf(value: Uint8Array | string): string {
  return createHash("sha256").update(value).digest("hex");
}

const TRAVEL_MS = [1, 30] as const;
const ASK_AGAIN_MS = 200;

/** In the broken way that checks first: how long the process needs from its check to its write. */
const CHECK_TO_WRITE_MS = 500;

const TIMEOUT_MS = 3_000;

export interface SinkFaults {
  /** Share of messages that are lost, each way. */
  loss: number;
}

/** The sink as one process sees it. */
export class SimulatedSink implements Sink {
  constructor(
    readonly process: SimulatedProcess,
    readonly store: SimulatedStore,
    readonly faults: SinkFaults,
  ) {}

  advanceFence(identity: WriteIdentity): Promise<AdvanceAnswer> {
    return this.#ask((answer) => answer(this.store.advance(identity, this.process.nowMs())));
  }

  commitResult(request: CommitRequest): Promise<CommitAnswer> {
    return this.#ask((answer) => {
      const refusal = this.store.refuses(request);
      if (refusal !== undefined) answer(refusal);
      else if (this.store.compares !== "checks first, writes later") {
        answer(this.store.write(request, this.process.nowMs()));
      } else {
        // the check has passed in this process; the write follows when the process comes to it
        this.process.after(CHECK_TO_WRITE_MS, () =>
          answer(this.store.write(request, this.process.nowMs())),
        );
      }
    });
  }

  async readResult(key: string): Promise<ReadAnswer> {
    const value = this.store.keys.get(key)?.committed?.value;
    return {
      key,
      value: value === undefined ? value : Buffer.from(value),
      fence: undefined,
      matches: undefined,
    };
  }

  async close(): Promise<void> {}

  #ask<T>(apply: (answer: (value: T) => void) => void): Promise<T> {
    const { scheduler } = this.process;
    const isLost = () => scheduler.random.chance(this.faults.loss);
    return new Promise((resolve, reject) => {
      let settled = false;
      const deadlineMs = this.process.nowMs() + TIMEOUT_MS;
      const answer = (value: T) => {
        if (isLost()) return;
        scheduler.after(this.#travel(), () =>
          this.process.receive(() => {
            settled = true;
            resolve(value);
          }),
        );
      };
      const attempt = () => {
        if (settled) return;
        if (this.process.nowMs() >= deadlineMs) {
          reject(new SinkOutcomeUnknownError("the simulated sink did not answer"));
          return;
        }
        if (!isLost()) scheduler.after(this.#travel(), () => apply(answer));
        this.process.after(ASK_AGAIN_MS, attempt);
      };
      attempt();
    });
  }

  #travel(): number {
    return this.process.scheduler.random.whole(...TRAVEL_MS);
  }
}
