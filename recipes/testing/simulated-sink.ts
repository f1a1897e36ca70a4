/**
 * A simulated sink as one process sees it: one atomic step at the store, and a way there and back on which messages are
 * late or lost. What is done about a lost reply is the production code (`lib/redis/ask.ts`).
 */
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { SinkUnreachableError } from "../../lib/errors.js";
import { type Asked, ask } from "../../lib/redis/ask.js";
import type { Attempt, Limits } from "../../lib/redis/attempt.js";
import type {
  AdvanceAnswer,
  CallOptions,
  CommitAnswer,
  CommitRequest,
  ReadAnswer,
  Sink,
  WriteIdentity,
} from "../../lib/sink.js";
import type { Random } from "./random.js";
import type { SimulatedProcess } from "./simulated-process.js";
import type { SimulatedStore } from "./simulated-store.js";

/** How the network and the server treat all clients of the sink; changed by faults while a simulation runs. */
export interface SinkWeather {
  /** Share of messages that are lost, each way. */
  loss: number;
  /** What each message takes longer, in milliseconds. */
  slowMs: number;
  /** Whether the server runs. */
  isUp: boolean;
  /** Counts its starts: after each, and after a flush, it has no script and has to be given it again. */
  scriptsLife: number;
}

/** What one question does at the store. */
interface StoreRequest {
  step: (store: SimulatedStore, nowMs: number) => unknown;
}

const TRAVEL_MS = [1, 30] as const;

/** How long a reply is waited for before the attempt counts as lost, in milliseconds. */
const REPLY_TIMEOUT_MS = 250;

const CALL_TIMEOUT_MS = 3_000;

export interface SimulatedSinkOptions {
  process: SimulatedProcess;
  random: Random;
  store: SimulatedStore;
  weather: SinkWeather;
}

export class SimulatedSink implements Sink, Asked<StoreRequest> {
  readonly place = "the simulated sink";
  readonly #options: SimulatedSinkOptions;
  /** The life of the server in which it was last given the scripts. */
  #scriptsLife = 0;

  constructor(options: SimulatedSinkOptions) {
    this.#options = options;
  }

  advanceFence(identity: WriteIdentity, call?: CallOptions): Promise<AdvanceAnswer> {
    return this.#ask(true, (store, nowMs) => store.advanceFence(identity, nowMs), call);
  }

  commitResult(request: CommitRequest, call?: CallOptions): Promise<CommitAnswer> {
    return this.#ask(true, (store, nowMs) => store.commitResult(request, nowMs), call);
  }

  readResult(key: string, call?: CallOptions): Promise<ReadAnswer> {
    return this.#ask(false, (store, nowMs) => store.readResult(key, nowMs), call);
  }

  async close(): Promise<void> {}

  /** One attempt, with another way there and back first where the server has not got the scripts. */
  async run(request: StoreRequest, limits: Limits): Promise<Attempt> {
    const { weather } = this.#options;
    if (!weather.isUp) return { kind: "unsent", cause: new Error("the simulated sink is down") };
    if (this.#scriptsLife !== weather.scriptsLife) {
      const life = weather.scriptsLife;
      const loaded = await this.#exchange(() => undefined, limits);
      if (loaded.kind !== "reply") return loaded;
      this.#scriptsLife = life;
    }
    return this.#exchange(request.step, limits);
  }

  #ask<Answer>(
    writes: boolean,
    step: (store: SimulatedStore, nowMs: number) => Answer,
    { timeoutMs = CALL_TIMEOUT_MS, signal }: CallOptions = {},
  ): Promise<Answer> {
    const deadline = Deadline.after(timeoutMs, this.#options.process.main);
    const answerOf = (reply: unknown) => reply as Answer; // the store's answer comes as it is
    return ask<Answer, StoreRequest>(this, { step, writes, answerOf }, { deadline, signal });
  }

  async #exchange(step: StoreRequest["step"], limits: Limits): Promise<Attempt> {
    const { process, store } = this.#options;
    const deadline = limits.deadline.atMost(REPLY_TIMEOUT_MS);
    const replied = new Promise<unknown>((resolve) => {
      this.#travel(() => {
        const reply = step(store, process.scheduler.nowMs());
        this.#travel(() => process.main.receive(() => resolve(reply)));
      });
    });
    // a signal ends the wait and not the request, which may still be carried out
    const reply = await settleWithin(replied, deadline, limits.signal).catch(() => TIMED_OUT);
    if (reply !== TIMED_OUT) return { kind: "reply", reply };
    return { kind: "lost", cause: new SinkUnreachableError("the simulated sink did not answer") };
  }

  #travel(arrive: () => void): void {
    const { process, random, weather } = this.#options;
    if (random.chance(weather.loss)) return;
    process.scheduler.after(random.whole(...TRAVEL_MS) + weather.slowMs, () => {
      if (weather.isUp) arrive();
    });
  }
}
