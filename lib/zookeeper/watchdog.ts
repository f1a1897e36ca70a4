/**
 * Gives a session up whose client reports connected or connecting and hears nothing. By then the server has most likely
 * expired it; a fresh session, with addresses resolved afresh, is what helps in every case.
 */
import type { Clock } from "../clock.js";

/** The watchdog looks this often within one session timeout. */
const LOOKS_PER_TIMEOUT = 3;

/** After so many silent looks in a row (one timeout) the server is asked, and after so many (three) we give up. */
const ASK_AFTER = LOOKS_PER_TIMEOUT;
const GIVE_UP_AFTER = 3 * LOOKS_PER_TIMEOUT;

export interface WatchdogOptions {
  clock: Clock;
  /** The negotiated session timeout, in milliseconds. */
  timeoutMs: () => number;
  lastConfirmedAtMs: () => number;
  /** Asks the server something, if it can be asked. */
  ask: () => void;
  giveUp: () => void;
}

export class Watchdog {
  readonly #options: WatchdogOptions;
  #cancel = () => {};
  #seenAtMs = Number.NEGATIVE_INFINITY;
  /** Looks in a row that found nothing new. Looks are counted and not time: a process that was stopped looks once. */
  #silent = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, timeoutMs } = this.#options;
    this.#cancel = clock.after(timeoutMs() / LOOKS_PER_TIMEOUT, () => {
      this.start();
      this.#look();
    });
  }

  end(): void {
    this.#cancel();
  }

  #look(): void {
    const { lastConfirmedAtMs, ask, giveUp } = this.#options;
    const atMs = lastConfirmedAtMs();
    this.#silent = atMs > this.#seenAtMs ? 0 : this.#silent + 1;
    this.#seenAtMs = atMs;
    if (this.#silent >= GIVE_UP_AFTER) giveUp();
    else if (this.#silent >= ASK_AFTER) ask();
  }
}
