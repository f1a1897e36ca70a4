/**
 * The waits of one sink. Closing the sink ends them all, at once and whatever they are doing.
 */
import { SinkUnreachableError } from "../errors.js";

export class OpenWaits {
  readonly #open = new Set<AbortController>();
  #isClosed = false;

  /** Runs a wait under a signal that follows the caller's, until the sink is closed. */
  async run<Answer>(
    signal: AbortSignal | undefined,
    wait: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    signal?.throwIfAborted();
    if (this.#isClosed) throw closed();
    const ending = new AbortController();
    // not AbortSignal.any: a signal that lives long would keep each of these
    const follow = () => ending.abort(signal?.reason);
    signal?.addEventListener("abort", follow, { once: true });
    this.#open.add(ending);
    try {
      return await wait(ending.signal);
    } finally {
      this.#open.delete(ending);
      signal?.removeEventListener("abort", follow);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const ending of this.#open) ending.abort(closed());
  }
}

function closed(): SinkUnreachableError {
  return new SinkUnreachableError("the sink has been closed");
}
