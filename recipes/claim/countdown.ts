/**
 * The time a claim has left: until its local deadline, and the warnings before it. The deadline moves on each time the
 * server confirms the session.
 */
import type { Session } from "../../lib/zookeeper/session-port.js";

/** Share of the session timeout kept back for clocks that tick apart and timers that fire late. */
const MARGIN_SHARE = 0.1;

interface Warning {
  beforeMs: number;
  listener: (remainingMs: number) => void;
  told: boolean;
}

export interface CountdownOptions {
  session: Session;
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

  /** Calls back once each time that less than this is left; gives a function that ends it. */
  warn(beforeMs: number, listener: (remainingMs: number) => void): () => void {
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

  /** The server keeps the session for its timeout after the last exchange; we are done, and stopped, before that. */
  #deadlineAtMs(): number {
    const { session, stopGraceMs } = this.#options;
    const { lastConfirmedAtMs, negotiatedTimeoutMs } = session;
    const marginMs = negotiatedTimeoutMs * MARGIN_SHARE;
    return lastConfirmedAtMs + negotiatedTimeoutMs - marginMs - stopGraceMs;
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
