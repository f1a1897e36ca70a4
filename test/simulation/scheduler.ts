/**
 * Virtual time: what happens next is decided by a queue and a seed, never by a clock of the machine. Goal: a schedule
 * can be run again and is the same to the letter.
 */
import type { Clock } from "../../lib/clock.js";
import type { Random } from "./random.js";

interface Entry {
  atMs: number;
  /** Order among entries of one moment: random, so that no order is taken for granted. */
  tie: number;
  run: () => void;
  cancelled: boolean;
}

export class Scheduler implements Clock {
  #nowMs = 0;
  readonly #entries: Entry[] = [];

  constructor(readonly random: Random) {}

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const entry: Entry = { atMs, tie: this.random.next(), run, cancelled: false };
    let index = this.#entries.length;
    while (index > 0 && isBefore(entry, this.#entries[index - 1] as Entry)) index -= 1;
    this.#entries.splice(index, 0, entry);
    return () => {
      entry.cancelled = true;
    };
  }

  /** Timers that are still to come. */
  get pending(): number {
    return this.#entries.filter(({ cancelled }) => !cancelled).length;
  }

  /** Runs what is due, in order, until the condition holds or virtual time is over; says whether it held. */
  async runUntil(done: () => boolean, limitMs: number): Promise<boolean> {
    await settled();
    for (;;) {
      if (done()) return true;
      const entry = this.#entries.shift();
      if (entry === undefined || entry.atMs > limitMs) return false;
      if (entry.cancelled) continue;
      this.#nowMs = entry.atMs;
      entry.run();
      await settled();
    }
  }
}

/** Later in time is later; of two of one moment the one with the higher number. */
function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
}

/** All promises that can go on have gone on: nothing in a simulation waits for anything but promises and timers. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
