/**
 * One worker of a simulation: a simulated process with its view of ZooKeeper and of the sink, as `work` gets it.
 */

import type { Clock } from "../../lib/clock.js";
import { Deadline, untilPassed } from "../../lib/deadline.js";
import type { Sink } from "../../lib/sink.js";
import type { FencingToken } from "../../lib/token.js";
import type { Claim } from "../claim.js";
import type { Random } from "./random.js";
import type { SimulatedProcess } from "./simulated-process.js";
import type { SimulatedZooKeeper } from "./simulated-zookeeper.js";

/** What a worker needs of the simulation around it. */
export interface Surroundings {
  readonly random: Random;
  /** When no more faults come. */
  readonly faultsOver: boolean;
  /** Whether strangers have put anything among the contenders. */
  readonly strangersCame: boolean;
  readonly checks: WorkerChecks;
  note(who: string, what: string): void;
  violated(what: string): void;
}

/** What a worker tells the checks. */
export interface WorkerChecks {
  claims(worker: string): void;
  granted(worker: Worker, claim: Claim): () => void;
  begins(claim: Claim): void;
  acknowledged(token: string): void;
  refused(token: string, fence: string): void;
}

export class Worker {
  readonly name: string;
  /** The process that it runs in, where faults are done to it. */
  readonly process: SimulatedProcess;
  /** To be given to `claim` and `fencedRun`. */
  readonly zookeeper: SimulatedZooKeeper;
  readonly sink: Sink;

  constructor(
    readonly surroundings: Surroundings,
    parts: { process: SimulatedProcess; zookeeper: SimulatedZooKeeper; sink: Sink },
  ) {
    this.name = parts.process.name;
    this.process = parts.process;
    this.zookeeper = parts.zookeeper;
    this.sink = parts.sink;
  }

  /** Virtual time, as this worker's main thread sees it. */
  get clock(): Clock {
    return this.process.main;
  }

  /** The only randomness that there may be, or a seed does not give the same history twice. */
  get random(): Random {
    return this.surroundings.random;
  }

  /** True when no more faults come, and everything has to work. */
  get faultsOver(): boolean {
    return this.surroundings.faultsOver;
  }

  /** Waits in virtual time; a signal ends the wait, and is no error here. */
  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    const wait = untilPassed(Deadline.after(ms, this.clock), signal);
    await wait.catch(() => {}); // the caller looks at its signal
  }

  /** Keeps this worker's main thread busy, as a loop that computes does; its session's thread goes on. */
  async busy(ms: number): Promise<void> {
    this.process.block();
    this.process.scheduler.after(ms, () => this.process.unblock());
    await this.pause(0);
  }

  /** Tells the checks that this worker is about to claim, so that contenders can be counted. */
  claims(): void {
    this.surroundings.checks.claims(this.name);
  }

  /** Tells the checks that the worker holds a claim now, until the returned function is called. */
  holds(claim: Claim): () => void {
    return this.surroundings.checks.granted(this, claim);
  }

  /** Tells the checks that fenced work begins: the fence at the sink has been raised to the claim's token. */
  begins(claim: Claim): void {
    this.surroundings.checks.begins(claim);
  }

  /** Tells the checks that the sink has said that a write was accepted. */
  acknowledged(claim: Claim): void {
    this.surroundings.checks.acknowledged(claim.token.text);
  }

  /** Tells the checks that the sink has refused a write of the claim's, because the fence is above it. */
  refused(token: FencingToken, fenceText: string): void {
    this.surroundings.checks.refused(token.text, fenceText);
  }

  /** Adds a line to the history. */
  note(what: string): void {
    this.surroundings.note(this.name, what);
  }

  /** Something happened that must not. */
  violated(what: string): void {
    this.surroundings.violated(`${this.name}: ${what}`);
  }
}
