/**
 * Virtual time: what happens next is decided by a queue and a seed, never by a clock of the machine, so that a schedule
 * can be run again and is the same to the letter.
 */
import type { Clock } from "../../lib/clock.js";
import type { Random } from "./random.js";

interface Entry {
  atMs: number;
  /** Order among entries of one moment: random, so that no order is taken for granted. */
  tie: number;
  run: (() => void) | undefined;
}

/** The first day of 2026, in milliseconds since 1970. */
const BEGIN_MS = 1_767_225_600_000;

/** So many steps are done before the process gets a turn for other things. */
const TURNS_PER_BREATH = 1_000;

export class Scheduler implements Clock {
  #nowMs = 0;
  /** A binary heap: each entry comes before its two children, at twice its index and one or two more. */
  readonly #heap: Entry[] = [];

  constructor(readonly random: Random) {}

  nowMs(): number {
    return this.#nowMs;
  }

  /** A simulation begins at the same moment each time. */
  wallMs(): number {
    return BEGIN_MS + this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const entry: Entry = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      tie: this.random.next(),
      run,
    };
    this.#heap.push(entry);
    this.#rise(this.#heap.length - 1);
    return () => {
      entry.run = undefined;
    };
  }

  /** Runs what is due, in order, until the condition holds or virtual time is over; says whether it held. */
  async runUntil(done: () => boolean, limitMs: number): Promise<boolean> {
    await settled();
    for (let turn = 1; ; turn += 1) {
      if (turn % TURNS_PER_BREATH === 0) await breathe();
      if (done()) return true;
      const [next] = this.#heap;
      if (next === undefined || next.atMs > limitMs) return false;
      this.#takeFirst();
      if (next.run === undefined) continue; // it was cancelled
      this.#nowMs = next.atMs;
      next.run();
      await settled();
    }
  }

  #rise(index: number): void {
    const heap = this.#heap;
    for (let at = index; at > 0; ) {
      const above = (at - 1) >> 1;
      if (!isBefore(heap[at] as Entry, heap[above] as Entry)) return;
      this.#exchange(at, above);
      at = above;
    }
  }

  #takeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ; ) {
      let first = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        const isThere = below < heap.length;
        if (isThere && isBefore(heap[below] as Entry, heap[first] as Entry)) first = below;
      }
      if (first === at) return;
      this.#exchange(at, first);
      at = first;
    }
  }

  #exchange(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b] as Entry, heap[a] as Entry];
  }
}

/** Later in time is later; of two of one moment the one with the higher number. */
function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie);
}

/**
 * All promises that can go on have gone on: nothing in a simulation waits for anything but promises and timers. Node
 * empties its queue of promises before it looks at its queue of ticks, so that no turn of the event loop is needed.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** Lets the process do whatever else it has to. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
