/**
 * Who wants to be told of watch events, by path. A path without listeners takes no room.
 */
export class WatchListeners {
  readonly #byPath = new Map<string, Set<() => void>>();

  /** Gives a function that takes the listener away again. */
  add(path: string, listener: () => void): () => void {
    const listeners = this.#byPath.get(path) ?? new Set();
    this.#byPath.set(path, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#byPath.get(path) === listeners) this.#byPath.delete(path);
    };
  }

  /** The listeners of a path as they are now, whatever is added or taken away while they are told. */
  of(path: string): (() => void)[] {
    return [...(this.#byPath.get(path) ?? [])];
  }

  get paths(): string[] {
    return [...this.#byPath.keys()];
  }
}
