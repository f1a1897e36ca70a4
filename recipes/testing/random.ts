/**
 * Randomness from a seed: the same seed gives the same numbers on every machine (the generator is mulberry32).
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 or more, below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)] as T; // callers never pass an empty list
  }

  /** A uuid of version 4. */
  uuid(): string {
    const eight = () =>
      Math.floor(this.next() * 2 ** 32)
        .toString(16)
        .padStart(8, "0");
    const digits = eight() + eight() + eight() + eight();
    const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
    return [...parts, `8${digits.slice(17, 20)}`, digits.slice(20)].join("-");
  }
}
