/**
 * What the server last confirmed, and keeping that recent: the ground on which a claim's local deadline stands.
 */
import type { Clock } from "../clock.js";
import { ZooKeeperRequestError } from "../errors.js";
import { isServerAnswer } from "./request-error.js";

/** While somebody needs it, the server is asked this many times within one session timeout. */
const QUESTIONS_PER_TIMEOUT = 6;

/** A point in monotonic time that is kept somewhere; -Infinity when it has not come yet. */
export interface Moment {
  atMs: number;
}

export interface ConfirmationOptions {
  clock: Clock;
  /** Where the start of the last confirmed exchange is kept. */
  moment: Moment;
  /** The negotiated session timeout, in milliseconds. */
  timeoutMs: () => number;
  /** Asks the server something; undefined while it cannot be asked. */
  ask: () => Promise<unknown> | undefined;
}

export class Confirmation {
  readonly #options: ConfirmationOptions;
  #kept = false;
  #cancel = () => {};
  #asking = false;
  #ended = false;

  constructor(options: ConfirmationOptions) {
    this.#options = options;
  }

  /** Follows a request, and notes its start as confirmed when the server turns out to have taken part. */
  async follow<T>(request: Promise<T>): Promise<T> {
    const { clock, moment } = this.#options;
    const startedAtMs = clock.nowMs();
    const confirm = () => {
      if (!this.#ended) moment.atMs = Math.max(moment.atMs, startedAtMs);
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

  /** Whether the server is to be asked when nothing else has been for a while. */
  keep(kept: boolean): void {
    if (kept === this.#kept) return;
    this.#kept = kept;
    if (kept) this.#schedule();
    else this.#cancel();
  }

  /** No more questions, and nothing that is answered from now on counts. */
  end(): void {
    this.#ended = true;
    this.#cancel();
  }

  #schedule(): void {
    const { clock, moment, timeoutMs } = this.#options;
    const periodMs = timeoutMs() / QUESTIONS_PER_TIMEOUT;
    const idleMs = clock.nowMs() - moment.atMs;
    // never in a tight loop, also when the last answer is long ago
    this.#cancel = clock.after(Math.max(periodMs - idleMs, periodMs / 4), () => {
      if (!this.#kept || this.#ended) return;
      if (clock.nowMs() - moment.atMs >= periodMs * 0.9) this.#ask();
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
