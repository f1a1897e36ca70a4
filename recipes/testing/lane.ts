/**
 * One thread of a simulated process: its timers, and what comes in from outside. While it is held up both wait; when it
 * goes on, timers that are due run first, as in Node's event loop.
 */
import type { Clock } from "../../lib/clock.js";
import type { Scheduler } from "./scheduler.js";

export class Lane implements Clock {
  readonly #holds = new Set<string>();
  #ended = false;
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  #pending = 0;
  #goesOnAtMs = 0;

  constructor(readonly scheduler: Scheduler) {}

  /** Held up, or ended: it does nothing now. */
  get isIdle(): boolean {
    return this.#ended || this.#holds.size > 0;
  }

  /** Idle, or with something left from then: it goes on, and does not know yet what it has missed. */
  get isBehind(): boolean {
    return this.isIdle || this.#waiting > 0;
  }

  /** Since when it has been running without a break. */
  get runsSinceMs(): number {
    return this.isIdle ? Number.POSITIVE_INFINITY : this.#goesOnAtMs;
  }

  /** Timers that are still to come. */
  get pendingTimers(): number {
    return this.#ended ? 0 : this.#pending;
  }

  nowMs(): number {
    return this.scheduler.nowMs();
  }

  wallMs(): number {
    return this.scheduler.wallMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    let waiting = true;
    this.#pending += 1;
    const finish = () => {
      if (waiting) this.#pending -= 1;
      const was = waiting;
      waiting = false;
      return was;
    };
    const fire = () => {
      if (finish()) callback();
    };
    const cancel = this.scheduler.after(delayMs, () => {
      if (this.#ended) return;
      if (this.isIdle) this.#timers.push(fire);
      else fire();
    });
    return () => {
      finish();
      cancel();
    };
  }

  /** Something that comes in from outside. */
  receive(arrival: () => void): void {
    if (this.#ended) return;
    if (this.isBehind) this.#arrivals.push(arrival);
    else arrival();
  }

  /** Holds the thread up, for a reason that has a name; several can hold it at once. */
  hold(reason: string): void {
    this.#holds.add(reason);
  }

  letGo(reason: string): void {
    if (!this.#holds.delete(reason) || this.isIdle) return;
    this.#goesOnAtMs = this.scheduler.nowMs();
    this.#runWaiting();
  }

  /** It never does anything again. */
  end(): void {
    this.#ended = true;
    this.#timers = [];
    this.#arrivals = [];
  }

  get #waiting(): number {
    return this.#timers.length + this.#arrivals.length;
  }

  /** One turn after the other, so that promises go on in between. */
  #runWaiting(): void {
    if (this.isIdle) return;
    const next = this.#timers.shift() ?? this.#arrivals.shift();
    if (next === undefined) return;
    next();
    if (this.#waiting > 0) {
      this.scheduler.after(0, () => this.#runWaiting());
    }
  }
}
