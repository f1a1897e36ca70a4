/**
 * One process's way to a simulated store, on which messages are late or lost.
 */
import { settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { SinkUnreachableError } from "../../lib/errors.js";
import type { Attempt, Limits, ScriptRequest } from "../../lib/redis/attempt.js";
import type { SinkConnection } from "../../lib/redis/scripted-sink.js";
import type { Watcher, Watching } from "../../lib/redis/watcher.js";
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

export interface SimulatedWay {
  process: SimulatedProcess;
  random: Random;
  store: SimulatedStore;
  weather: SinkWeather;
}

const TRAVEL_MS = [1, 30] as const;

/** How long a reply is waited for before the attempt counts as lost, in milliseconds. */
const REPLY_TIMEOUT_MS = 250;

export class SimulatedSinkConnection implements SinkConnection {
  readonly place = "the simulated sink";
  /** The life of the server in which it was last given the scripts. */
  #scriptsLife = 0;

  constructor(readonly options: SimulatedWay) {}

  /** One attempt, with another way there and back first where the server has not got the scripts. */
  async run(request: ScriptRequest, limits: Limits): Promise<Attempt> {
    const { weather, store } = this.options;
    if (!weather.isUp) return { kind: "unsent", cause: new Error("the simulated sink is down") };
    if (this.#scriptsLife !== weather.scriptsLife) {
      const life = weather.scriptsLife;
      const loaded = await this.#exchange(() => undefined, limits);
      if (loaded.kind !== "reply") return loaded;
      this.#scriptsLife = life;
    }
    const values = await request.values;
    return this.#exchange((nowMs) => store.call({ ...request, values }, nowMs), limits);
  }

  /** One attempt at a plain command that only reads. */
  async look(read: (nowMs: number) => unknown, limits: Limits): Promise<Attempt> {
    if (this.options.weather.isUp) return this.#exchange(read, limits);
    return { kind: "unsent", cause: new Error("the simulated sink is down") };
  }

  /** A connection of its own, on which a message comes late, or is lost and the connection with it. */
  async watch(key: string, watcher: Watcher, limits: Limits): Promise<Watching> {
    const { store, process, random, weather } = this.options;
    let isOver = false;
    let stop = () => {};
    const tell = () => {
      const isLost = random.chance(weather.loss);
      process.scheduler.after(random.whole(...TRAVEL_MS) + weather.slowMs, () => {
        process.main.receive(() => (isLost || !weather.isUp ? watcher.lost() : watcher.changed()));
      });
    };
    const begin = () => {
      if (!isOver) stop = store.keyspace.watch(key, tell);
    };
    const begun = await this.#exchange(begin, limits);
    if (begun.kind === "reply") return { kind: "watching", stop: () => stop() };
    isOver = true;
    stop();
    return begun;
  }

  async close(): Promise<void> {}

  async #exchange(
    step: (nowMs: number) => unknown,
    limits: Limits,
  ): Promise<Extract<Attempt, { kind: "reply" | "lost" }>> {
    const { process } = this.options;
    const deadline = limits.deadline.atMost(REPLY_TIMEOUT_MS);
    const replied = new Promise<unknown>((resolve) => {
      this.#travel(() => {
        const reply = step(Math.floor(process.scheduler.nowMs()));
        this.#travel(() => process.main.receive(() => resolve(reply)));
      });
    });
    // a signal ends the wait and not the request, which may still be carried out
    const reply = await settleWithin(replied, deadline, limits.signal).catch(() => TIMED_OUT);
    if (reply !== TIMED_OUT) return { kind: "reply", reply };
    return { kind: "lost", cause: new SinkUnreachableError("the simulated sink did not answer") };
  }

  #travel(arrive: () => void): void {
    const { process, random, weather } = this.options;
    if (random.chance(weather.loss)) return;
    process.scheduler.after(random.whole(...TRAVEL_MS) + weather.slowMs, () => {
      if (weather.isUp) arrive();
    });
  }
}
