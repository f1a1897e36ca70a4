/**
 * A clock that stands still until the test moves it. Timers run in the order of their times, also new ones.
 */
import type { Clock } from "../../lib/clock.js";

export class HandClock implements Clock {
  #nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];

  wallMs = () => 0;

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get timers(): number {
    return this.#timers.length;
  }

  move(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= endMs);
      const next = due.sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
    }
    this.#nowMs = endMs;
  }

  /** As {@link move}, and lets everything go on that waited for one of the timers. */
  async pass(byMs: number): Promise<void> {
    await settled();
    this.move(byMs);
    await settled();
  }
}

/** All promises that can go on have gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
