/**
 * A ZooKeeper ensemble as a source of sessions: the living session, or a fresh one after a loss.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import { OptionError, SessionClosedError, ZooKeeperUnreachableError } from "../errors.js";
import { type ConnectString, parseConnectString } from "./connect-string.js";
import { ZK } from "./request-error.js";
import { resolveServers } from "./resolve-servers.js";
import { type NativeSession, openSession } from "./session.js";
import type { Session, SessionSource } from "./session-port.js";
import { untilState } from "./until-state.js";

export interface ZooKeeperOptions {
  /** `host:port,host:port/chroot` */
  connect: string;
  /** Session timeout to ask for, in milliseconds; the server may grant another. Default 10 000. */
  sessionTimeoutMs?: number;
  /** How long to wait for a server's answer when a session is opened or has lost its connection. Default 5 000. */
  connectTimeoutMs?: number;
  /** Told in plain words what is odd but no error. Default: nothing is told. */
  warn?: (message: string) => void;
  clock?: Clock;
}

/** Longest session timeout the client can carry: 2^31 - 1 milliseconds. */
const TIMEOUT_MS_MAX = 2_147_483_647;

/** Never connects before the first request for a session. One session is shared by all who ask. */
export class ZooKeeper implements SessionSource {
  readonly connectTimeoutMs: number;
  readonly #servers: ConnectString;
  readonly #sessionTimeoutMs: number;
  readonly clock: Clock;
  readonly #warn: (message: string) => void;
  #current: Promise<NativeSession> | undefined;
  readonly #closing = new AbortController();

  /** @throws OptionError when an option cannot be used */
  constructor(options: ZooKeeperOptions) {
    this.#servers = parseConnectString(options.connect);
    this.#sessionTimeoutMs = checkTimeout("sessionTimeoutMs", options.sessionTimeoutMs ?? 10_000);
    this.connectTimeoutMs = checkTimeout("connectTimeoutMs", options.connectTimeoutMs ?? 5_000);
    this.clock = options.clock ?? systemClock;
    this.#warn = options.warn ?? (() => {});
  }

  async session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    const bounded = deadline.atMost(this.connectTimeoutMs);
    for (;;) {
      signal?.throwIfAborted();
      this.#closing.signal.throwIfAborted();
      const opening = this.#open();
      const session = await settleWithin(opening, bounded, signal);
      if (session === TIMED_OUT) throw this.#unreachable();
      const state = await untilState(session, (s) => s !== "SUSPENDED", bounded, signal);
      if (state === TIMED_OUT) throw this.#unreachable();
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** One opening at a time, shared by all who wait; a failed one is forgotten. */
  #open(): Promise<NativeSession> {
    if (this.#current === undefined) {
      const opening = this.#openFresh();
      this.#current = opening;
      opening.catch(() => {
        if (this.#current === opening) this.#current = undefined;
      });
    }
    return this.#current;
  }

  async #openFresh(): Promise<NativeSession> {
    const deadline = Deadline.after(this.connectTimeoutMs, this.clock);
    const session = await openSession({
      servers: await resolveServers(this.#servers, deadline),
      sessionTimeoutMs: this.#sessionTimeoutMs,
      clock: this.clock,
      deadline,
      signal: this.#closing.signal,
    });
    if (session.negotiatedTimeoutMs !== this.#sessionTimeoutMs) {
      this.#warn(
        `ZooKeeper granted a session timeout of ${session.negotiatedTimeoutMs} ms ` +
          `instead of ${this.#sessionTimeoutMs} ms (the server's limits are 2 and 20 ticks)`,
      );
    }
    return session;
  }

  #unreachable(): ZooKeeperUnreachableError {
    const hosts = this.#servers.servers.map(({ host, port }) => `${host}:${port}`).join(",");
    return new ZooKeeperUnreachableError(
      `no ZooKeeper server at ${hosts} answered within ${this.connectTimeoutMs} ms: ` +
        "check the address, and that a server runs there",
    );
  }
}

function checkTimeout(name: string, value: number): number {
  if (!Number.isInteger(value) || value < 1 || value > TIMEOUT_MS_MAX) {
    throw new OptionError(
      `${name} must be a whole number of milliseconds, 1 or more; it is ${value}`,
    );
  }
  return value;
}
