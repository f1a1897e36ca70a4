/**
 * What the server last confirmed, and keeping that recent: the ground on which a claim's local deadline stands.
 */
import type { Clock } from "../clock.js";
import { ZooKeeperRequestError } from "../errors.js";
import { isServerAnswer } from "./request-error.js";

/** While somebody needs it, the server is asked this many times within one session timeout. */
const QUESTIONS_PER_TIMEOUT = 6;

export interface ConfirmationOptions {
  clock: Clock;
  /** The negotiated session timeout, in milliseconds. */
  timeoutMs: () => number;
  /** Asks the server something; undefined while it cannot be asked. */
  ask: () => Promise<unknown> | undefined;
}

export class Confirmation {
  readonly #options: ConfirmationOptions;
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #keepers = 0;
  #cancel = () => {};
  #asking = false;
  #ended = false;

  constructor(options: ConfirmationOptions) {
    this.#options = options;
  }

  /** Monotonic time at which the last exchange that the server confirmed was started. */
  get lastAtMs(): number {
    return this.#lastAtMs;
  }

  /** Follows a request, and notes its start as confirmed when the server turns out to have taken part. */
  async follow<T>(request: Promise<T>): Promise<T> {
    const startedAtMs = this.#options.clock.nowMs();
    const confirm = () => {
      this.#lastAtMs = Math.max(this.#lastAtMs, startedAtMs);
    };
    try {
      const value = await request;
      confirm();
      return value;
    } catch (error) {
      if (error instanceof ZooKeeperRequestError && isServerAnswer(error.zookeeperCode)) confirm();
      throw error;
    }
  }

  /** Asks the server when nothing else has for a while, until the returned function is called. */
  keep(): () => void {
    this.#keepers += 1;
    if (this.#keepers === 1) this.#schedule();
    let kept = true;
    return () => {
      if (!kept) return;
      kept = false;
      this.#keepers -= 1;
      if (this.#keepers === 0) this.#cancel();
    };
  }

  /** No more questions. */
  end(): void {
    this.#ended = true;
    this.#cancel();
  }

  #schedule(): void {
    const { clock, timeoutMs } = this.#options;
    const periodMs = timeoutMs() / QUESTIONS_PER_TIMEOUT;
    const idleMs = clock.nowMs() - this.#lastAtMs;
    // never in a tight loop, also when the last answer is long ago
    this.#cancel = clock.after(Math.max(periodMs - idleMs, periodMs / 4), () => {
      if (this.#keepers === 0 || this.#ended) return;
      if (clock.nowMs() - this.#lastAtMs >= periodMs * 0.9) this.#ask();
      this.#schedule();
    });
  }

  #ask(): void {
    if (this.#asking) return;
    const question = this.#options.ask();
    if (question === undefined) return;
    this.#asking = true;
    question
      .catch(() => {}) // an unanswered question confirms nothing, and the local deadline acts on that
      .finally(() => {
        this.#asking = false;
      });
  }
}
