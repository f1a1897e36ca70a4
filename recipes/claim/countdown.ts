/**
 * The time a claim has left: until its local deadline, and the warnings before it. The deadline moves on each time the
 * server confirms the session.
 */
import { OptionError } from "../../lib/errors.js";
import type { Session } from "../../lib/zookeeper/session-port.js";

/** Share of the session timeout kept back for clocks that tick apart and timers that fire late. */
const MARGIN_SHARE = 0.1;

/** Default share of the session timeout that is left when the time counts as running out. */
const RUNNING_OUT_SHARE = 0.3;

interface Warning {
  beforeMs: number;
  listener: (remainingMs: number) => void;
  told: boolean;
}

export interface CountdownOptions {
  session: Pick<Session, "clock" | "negotiatedTimeoutMs" | "lastConfirmedAtMs">;
  /** Left to stop the work in, after the deadline, in milliseconds. */
  stopGraceMs: number;
  /** The deadline has passed. */
  onPassed: () => void;
}

export class Countdown {
  readonly #options: CountdownOptions;
  readonly #warnings = new Set<Warning>();
  #cancel = () => {};
  #ended = false;

  constructor(options: CountdownOptions) {
    this.#options = options;
    this.#arm();
  }

  /** Milliseconds until the deadline; 0 when it has passed. */
  remainingMs(): number {
    return Math.max(0, this.#deadlineAtMs() - this.#options.session.clock.nowMs());
  }

  /**
   * Calls back once each time that less than `beforeMs` is left, by default 30 per cent of the session timeout or half
   * of the whole countdown, whichever is less; gives a function that takes the listener away.
   *
   * @throws OptionError when `beforeMs` is not above 0, or more than a whole countdown
   */
  onRunningOut(
    listener: (remainingMs: number) => void,
    beforeMs: number = this.#defaultBeforeMs(),
  ): () => void {
    if (!(beforeMs > 0 && beforeMs <= this.#wholeMs())) {
      throw new OptionError(
        `beforeMs must be above 0 and at most ${this.#wholeMs()}, a whole countdown; it is ${beforeMs}`,
      );
    }
    if (this.#ended) return () => {};
    const warning = { beforeMs, listener, told: false };
    this.#warnings.add(warning);
    this.#arm();
    return () => {
      this.#warnings.delete(warning);
    };
  }

  end(): void {
    this.#ended = true;
    this.#cancel();
    this.#warnings.clear();
  }

  #defaultBeforeMs(): number {
    const { negotiatedTimeoutMs } = this.#options.session;
    return Math.min(negotiatedTimeoutMs * RUNNING_OUT_SHARE, this.#wholeMs() / 2);
  }

  /** The time from a confirmation to the deadline that it gives. */
  #wholeMs(): number {
    const { session, stopGraceMs } = this.#options;
    return session.negotiatedTimeoutMs * (1 - MARGIN_SHARE) - stopGraceMs;
  }

  /** The server keeps the session for its timeout after the last exchange; we are done, and stopped, before that. */
  #deadlineAtMs(): number {
    return this.#options.session.lastConfirmedAtMs + this.#wholeMs();
  }

  /** Sets the timer to what comes first: a warning that is due, or the deadline. */
  #arm(): void {
    if (this.#ended) return;
    this.#cancel();
    const untold = [...this.#warnings].filter(({ told }) => !told);
    const next = Math.max(0, ...untold.map(({ beforeMs }) => beforeMs));
    const remainingMs = this.#deadlineAtMs() - this.#options.session.clock.nowMs();
    this.#cancel = this.#options.session.clock.after(Math.max(0, remainingMs - next), () =>
      this.#look(),
    );
  }

  #look(): void {
    const remainingMs = this.remainingMs();
    if (remainingMs === 0) {
      this.#options.onPassed();
      return;
    }
    for (const warning of [...this.#warnings]) {
      const isLow = remainingMs <= warning.beforeMs;
      const tell = isLow && !warning.told;
      warning.told = isLow;
      if (tell) warning.listener(remainingMs);
    }
    this.#arm();
  }
}
