/**
 * A source of sessions: the living session, shared by all who ask, or a fresh one after a loss.
 */
import type { Clock } from "../clock.js";
import { type Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import { SessionClosedError } from "../errors.js";
import { ZK } from "./request-error.js";
import type { HandleSession } from "./session.js";
import type { Session, SessionSource } from "./session-port.js";
import { untilState } from "./until-state.js";

export interface SessionPoolOptions {
  clock: Clock;
  /** How long to wait for a session, or for its connection, in milliseconds. */
  connectTimeoutMs: number;
  /** Opens a fresh session; gives up at the signal. */
  open: (signal: AbortSignal) => Promise<HandleSession>;
  /** The error for a wait that was in vain. */
  unreachable: () => Error;
}

export class SessionPool implements SessionSource {
  readonly clock: Clock;
  readonly #options: SessionPoolOptions;
  #current: Promise<HandleSession> | undefined;
  readonly #closing = new AbortController();

  constructor(options: SessionPoolOptions) {
    this.clock = options.clock;
    this.#options = options;
  }

  async session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    const bounded = deadline.atMost(this.#options.connectTimeoutMs);
    for (;;) {
      signal?.throwIfAborted();
      this.#closing.signal.throwIfAborted();
      const opening = this.#open();
      const session = await settleWithin(opening, bounded, signal);
      if (session === TIMED_OUT) throw this.#options.unreachable();
      const state = await untilState(session, (s) => s !== "SUSPENDED", bounded, signal);
      if (state === TIMED_OUT) throw this.#options.unreachable();
      if (state === "CONNECTED") return session;
      if (this.#current === opening) this.#current = undefined; // lost: a fresh one is opened
    }
  }

  /** Closes the session, if there is one; safe to call again. */
  async close(): Promise<void> {
    this.#closing.abort(
      new SessionClosedError("this ZooKeeper was closed", "connect", "/", ZK.closing),
    );
    const session = await this.#current?.catch(() => undefined); // it never opened: nothing to close
    await session?.close();
  }

  /** One opening at a time, shared by all who wait; a failed one is forgotten. */
  #open(): Promise<HandleSession> {
    if (this.#current === undefined) {
      const opening = this.#options.open(this.#closing.signal);
      this.#current = opening;
      opening.catch(() => {
        if (this.#current === opening) this.#current = undefined;
      });
    }
    return this.#current;
  }
}
