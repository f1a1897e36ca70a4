/**
 * Everything that a simulation consists of: virtual time, ZooKeeper, the sink, and the workers; with what faults do to
 * it and what is undone when they end.
 */
import { claimPath } from "../../lib/zookeeper/paths.js";
import { JOB } from "./job.js";
import { Monitor } from "./monitor.js";
import { Random } from "./random.js";
import { Scheduler } from "./scheduler.js";
import { SimulatedEnsemble } from "./simulated-ensemble.js";
import { SimulatedProcess } from "./simulated-process.js";
import { simulatedSink } from "./simulated-sink.js";
import type { SinkWeather } from "./simulated-sink-connection.js";
import { SimulatedStore } from "./simulated-store.js";
import { SimulatedZooKeeper } from "./simulated-zookeeper.js";
import { type Surroundings, Worker } from "./worker.js";

/** What a worker does, from the start of its process until it has nothing more to do. */
export type Work = (worker: Worker) => Promise<void>;

export interface WorldOptions {
  seed: number;
  servers: number;
  workers: number;
  /** Number that the next contender gets at the start. */
  counter: number;
  work: Work;
}

/** All times in milliseconds. */
const TICK_MS = 1_000;
const ASKED_TIMEOUT_MS = 30_000;
export const GRANTED_TIMEOUT_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
const STUCK_MS = 9_000;

const STRANGER = "a stranger";

export class World implements Surroundings {
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly ensemble: SimulatedEnsemble;
  readonly store = new SimulatedStore();
  readonly monitor: Monitor;
  readonly weather: SinkWeather = { loss: 0, slowMs: 0, isUp: true, scriptsLife: 1 };
  /** All that there have ever been; of one name the last one lives. */
  readonly workers: Worker[] = [];
  readonly history: string[] = [];
  readonly violations: string[] = [];
  /** Sessions that ended before their time by a fault. */
  readonly cutShort = new Set<string>();
  faultsOver = false;
  strangersCame = false;
  /** Those whose work goes on. */
  readonly #working = new Set<Worker>();
  readonly #undo = new Set<() => void>();

  constructor(readonly options: WorldOptions) {
    this.random = new Random(options.seed);
    this.scheduler = new Scheduler(this.random);
    this.monitor = new Monitor(this);
    this.ensemble = new SimulatedEnsemble(
      this.scheduler,
      {
        servers: options.servers,
        tickMs: TICK_MS,
        maxSessionTimeoutMs: GRANTED_TIMEOUT_MS,
      },
      this.monitor,
    );
    this.#setCounter(options.counter);
    for (let index = 0; index < options.workers; index += 1) {
      this.#startWorker(String.fromCharCode("A".charCodeAt(0) + index));
    }
  }

  get checks(): Monitor {
    return this.monitor;
  }

  /** True when all workers have done what they had to. */
  get allDone(): boolean {
    return this.#working.size === 0;
  }

  note(who: string, what: string): void {
    this.history.push(`${this.scheduler.nowMs().toFixed(3)} ${who} ${what}`);
  }

  violated(what: string): void {
    if (this.violations.includes(what)) return;
    this.violations.push(what);
    this.note("VIOLATED", what);
  }

  /** Undoes something after a while, and in any case when the faults end. */
  later(ms: number, undo: () => void): void {
    const once = () => {
      if (this.#undo.delete(once)) undo();
    };
    this.#undo.add(once);
    this.scheduler.after(ms, once);
  }

  endFaults(): void {
    this.faultsOver = true;
    for (const undo of [...this.#undo]) undo();
    this.note("faults", "end");
  }

  /** A process dies, and one of the same name takes its place. */
  crash(worker: Worker, forMs: number): void {
    if (worker.process.isCrashed) return;
    worker.process.crash();
    worker.zookeeper.handle?.cut();
    this.later(forMs, () => {
      this.#working.delete(worker);
      this.#startWorker(worker.name);
    });
  }

  /** ZooKeeper as a process sees it. */
  zookeeperOf(process: SimulatedProcess): SimulatedZooKeeper {
    const { ensemble, random } = this;
    return new SimulatedZooKeeper({
      ...{ process, ensemble, random, sessionTimeoutMs: ASKED_TIMEOUT_MS },
      ...{ connectTimeoutMs: CONNECT_TIMEOUT_MS, stuckMs: STUCK_MS },
    });
  }

  /** A stranger's znode among the contenders, for a while. */
  stranger(prefix: string, forMs: number): void {
    const path = claimPath(JOB);
    if (this.ensemble.childrenOf(path).length === 0) return;
    this.strangersCame = true;
    const made = this.ensemble.create(STRANGER, `${path}/${prefix}`, "", "ephemeralSequential");
    this.later(forMs, () => {
      if (this.ensemble.tree.find(made, this.ensemble.zxid)) this.ensemble.delete(made);
    });
  }

  /** A session that is none of the workers', for a while. */
  strangersSession(forMs: number): string {
    const record = this.ensemble.openSession(GRANTED_TIMEOUT_MS);
    record.touchedAtMs = Number.POSITIVE_INFINITY;
    this.later(forMs, () => this.ensemble.closeSession(record.id));
    return record.id;
  }

  /** How many contenders processes of a name had a reason to make, beyond one for each claim. */
  reasonsToCreateOf(name: string): number {
    return this.#ofName(name).reduce((sum, { zookeeper }) => sum + zookeeper.reasonsToCreate, 0);
  }

  /** The living worker of each name. */
  get living(): Worker[] {
    return this.workers.filter(({ process }) => !process.isCrashed);
  }

  #ofName(name: string): Worker[] {
    return this.workers.filter((worker) => worker.name === name);
  }

  #startWorker(name: string): void {
    const process = new SimulatedProcess(name, this.scheduler);
    const { random, store, weather } = this;
    const zookeeper = this.zookeeperOf(process);
    const sink = simulatedSink({ process, random, store, weather });
    const worker = new Worker(this, { process, zookeeper, sink });
    this.workers.push(worker);
    this.#working.add(worker);
    this.options.work(worker).then(
      () => this.#working.delete(worker),
      (error) => {
        this.#working.delete(worker);
        worker.violated(`the work ended with ${error}`);
      },
    );
  }

  #setCounter(value: number): void {
    if (value === 0) return;
    const path = claimPath(JOB);
    const names = path.split("/").slice(1);
    names.forEach((_, index) => {
      const each = `/${names.slice(0, index + 1).join("/")}`;
      this.ensemble.create(
        STRANGER,
        each,
        "",
        index < names.length - 1 ? "persistent" : "container",
      );
    });
    this.ensemble.tree.get("set", path, this.ensemble.zxid).counter.set(value);
  }
}
