/**
 * How many contenders each worker made, against how many it had a reason to make: a claim, or a connection that broke.
 */
interface Counts {
  claims: number;
  made: number;
}

export class ContenderCounts {
  readonly #byWorker = new Map<string, Counts>();

  claims(worker: string): void {
    this.#of(worker).claims += 1;
  }

  made(worker: string): void {
    this.#of(worker).made += 1;
  }

  /** What is wrong, in words; `allowed` is what a worker may make beyond its claims. */
  tooMany(allowed: (worker: string) => number): string[] {
    return [...this.#byWorker].flatMap(([name, { claims, made }]) =>
      claims > 0 && made > claims + allowed(name)
        ? [`${name} made ${made} contenders in ${claims} claims`]
        : [],
    );
  }

  #of(worker: string): Counts {
    const counts = this.#byWorker.get(worker) ?? { claims: 0, made: 0 };
    this.#byWorker.set(worker, counts);
    return counts;
  }
}
