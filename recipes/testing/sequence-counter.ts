/**
 * The counter of a parent znode: a signed 32-bit number, with what servers really do at its end. As seen on 3.8.0 and
 * 3.9.3 it stops at 2147483647 and gives that number again and again; creates that come at once run on into the
 * negative numbers, because each counts on from the one before it and what is stored never goes down.
 */

/** So long after a create it counts as under way, in milliseconds, and the next one counts on from it. */
const UNDER_WAY_MS = 2;

export class SequenceCounter {
  #stored: number;
  #next: number;
  #underWayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(start = 0) {
    this.#stored = start;
    this.#next = start;
  }

  /** The number that a create gets now. */
  take(nowMs: number): number {
    const taken = nowMs < this.#underWayUntilMs ? this.#next : this.#stored;
    this.#next = (taken + 1) | 0;
    this.#underWayUntilMs = nowMs + UNDER_WAY_MS;
    this.#stored = Math.max(this.#stored, this.#next);
    return taken;
  }

  set(value: number): void {
    this.#stored = value;
    this.#underWayUntilMs = Number.NEGATIVE_INFINITY;
  }
}

/** As servers append it: ten digits, with a sign in the place of the first one for a negative number of up to nine. */
export function sequenceText(value: number): string {
  return value < 0 ? `-${String(-value).padStart(9, "0")}` : String(value).padStart(10, "0");
}
