/**
 * A process that can be stopped and continued: while it is stopped, its timers and what the network brings wait. When
 * it goes on, timers that are due run first, as Node's event loop does it.
 */
import type { Clock } from "../../lib/clock.js";
import type { Scheduler } from "./scheduler.js";

export class SimulatedProcess implements Clock {
  #stopped = false;
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];

  constructor(
    readonly name: string,
    readonly scheduler: Scheduler,
  ) {}

  get isStopped(): boolean {
    return this.#stopped;
  }

  nowMs(): number {
    return this.scheduler.nowMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    let cancelled = false;
    const fire = () => {
      if (!cancelled) callback();
    };
    const cancel = this.scheduler.after(delayMs, () => {
      if (this.#stopped) this.#timers.push(fire);
      else fire();
    });
    return () => {
      cancelled = true;
      cancel();
    };
  }

  /** Something that comes in from outside. */
  receive(arrival: () => void): void {
    if (this.#stopped) this.#arrivals.push(arrival);
    else arrival();
  }

  stop(): void {
    this.#stopped = true;
  }

  continue(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    const waiting = [...this.#timers.splice(0), ...this.#arrivals.splice(0)];
    // one turn after the other, so that promises go on in between
    const next = () => {
      if (this.#stopped) {
        this.#arrivals.unshift(...waiting.splice(0));
        return;
      }
      waiting.shift()?.();
      if (waiting.length > 0) this.scheduler.after(0, next);
    };
    next();
  }
}
