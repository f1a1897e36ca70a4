/**
 * A ZooKeeper ensemble as a source of sessions, which live on a thread of their own.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { ConfigurationError, OptionError, ZooKeeperUnreachableError } from "../errors.js";
import { type TlsOptions, tlsIdentityOf } from "../tls/tls-options.js";
import {
  type Access,
  type Acl,
  aclFor,
  type Credentials,
  checkAccess,
  credentialsOf,
  type DigestAuth,
} from "./access.js";
import { confirming } from "./confirming-handle.js";
import { type ConnectString, parseConnectString } from "./connect-string.js";
import type { OpenHandle } from "./handle.js";
import { NativeClient } from "./native-client.js";
import { openSession } from "./open-session.js";
import { resolveServers } from "./resolve-servers.js";
import type { HandleSession } from "./session.js";
import { SessionPool } from "./session-pool.js";
import type { Session, SessionSource } from "./session-port.js";
import { ClientThread } from "./thread/client-thread.js";
import { threaded } from "./thread/threaded-handle.js";
import { Tunnel } from "./tls/tunnel.js";

export type { TlsOptions } from "../tls/tls-options.js";
export type { Access, DigestAuth } from "./access.js";

export interface ZooKeeperOptions {
  /** `host:port,host:port/chroot` */
  connect: string;
  /**
   * Who we are. With it, the znodes that we make (the root, its `claims`, the claim paths and contenders) are given an
   * access control list: strangers can neither join a queue nor delete a contender.
   */
  auth?: DigestAuth;
  /** With `auth`: whether everybody may see who holds and who waits (`readable`, the default), or only we. */
  acl?: Access;
  /** Talk to the servers under TLS; `connect` has their secure ports. Their certificates are always verified. */
  tls?: TlsOptions;
  /** Session timeout to ask for, in milliseconds; the server may grant another. Default 10 000. */
  sessionTimeoutMs?: number;
  /** How long to wait for a server's answer when a session is opened or has lost its connection. Default 5 000. */
  connectTimeoutMs?: number;
  /**
   * Where the session lives. `own` (default): on a thread that all sessions of the process share, so that work that
   * keeps this thread busy does not cost the session. `caller`: on this thread, which must then never be busy for long;
   * for processes whose main thread uses the npm package `zookeeper` itself, which works in one thread only.
   */
  thread?: "own" | "caller";
  /**
   * How long this thread may be busy, in milliseconds, before it counts as stuck and the session is given up. Default
   * 180 000, three minutes. Without a meaning where the session lives on this thread.
   */
  stuckMs?: number;
  /** Told in plain words what is odd but no error. Default: nothing is told. */
  warn?: (message: string) => void;
}

/** Longest session timeout the client can carry: 2^31 - 1 milliseconds. */
const TIMEOUT_MS_MAX = 2_147_483_647;

const STUCK_MS = 180_000;

/** Never connects before the first request for a session. One session is shared by all who ask. */
export class ZooKeeper implements SessionSource {
  readonly clock: Clock = systemClock;
  readonly connectTimeoutMs: number;
  readonly #servers: ConnectString;
  readonly #credentials: Credentials | undefined;
  readonly #protection: Acl | undefined;
  readonly #sessionTimeoutMs: number;
  readonly #openHandle: OpenHandle;
  readonly #warn: (message: string) => void;
  readonly #tunnel: Tunnel | undefined;
  readonly #sessions: SessionPool;

  /** @throws OptionError when an option cannot be used */
  constructor(options: ZooKeeperOptions) {
    this.#servers = parseConnectString(options.connect);
    const { auth, acl } = options;
    if (acl !== undefined && auth === undefined) {
      throw new OptionError("acl goes with auth: without credentials nothing can be kept for us");
    }
    this.#credentials = auth && credentialsOf(auth);
    this.#protection = auth && aclFor(checkAccess(acl ?? "readable"));
    this.#sessionTimeoutMs = checkTimeout("sessionTimeoutMs", options.sessionTimeoutMs ?? 10_000);
    this.connectTimeoutMs = checkTimeout("connectTimeoutMs", options.connectTimeoutMs ?? 5_000);
    this.#openHandle = this.#chooseThread(options);
    this.#warn = options.warn ?? (() => {});
    this.#tunnel = options.tls && this.#tunnelWith(options.tls);
    this.#sessions = new SessionPool({
      clock: this.clock,
      connectTimeoutMs: this.connectTimeoutMs,
      open: (signal) => this.#open(signal),
      unreachable: () => this.#unreachable(),
    });
  }

  session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    return this.#sessions.session(deadline, signal);
  }

  /** Closes the session, if there is one; safe to call again. */
  async close(): Promise<void> {
    await this.#sessions.close();
    await this.#tunnel?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #chooseThread({ thread = "own", stuckMs = STUCK_MS }: ZooKeeperOptions): OpenHandle {
    checkTimeout("stuckMs", stuckMs);
    if (thread === "own") return threaded({ stuckMs });
    if (thread === "caller") return onThisThread;
    throw new OptionError(`thread must be "own" or "caller"; it is ${JSON.stringify(thread)}`);
  }

  async #open(signal: AbortSignal): Promise<HandleSession> {
    const deadline = Deadline.after(this.connectTimeoutMs, this.clock);
    const resolved = await resolveServers(this.#servers, deadline);
    const way = await this.#tunnel?.ready(deadline);
    const session = await openSession({
      servers: way?.servers ?? resolved,
      sessionTimeoutMs: this.#sessionTimeoutMs,
      credentials: this.#credentials,
      protection: this.#protection,
      openHandle: this.#openHandle,
      clock: this.clock,
      deadline,
      signal: way === undefined ? signal : AbortSignal.any([signal, way.untrusted]),
    }).catch((error) => {
      // The address in its message is one of ours, and it does not know why.
      const ours = way !== undefined && error instanceof ZooKeeperUnreachableError;
      throw ours ? this.#unreachable(error) : error;
    });
    if (session.negotiatedTimeoutMs !== this.#sessionTimeoutMs) {
      this.#warn(
        `ZooKeeper granted a session timeout of ${session.negotiatedTimeoutMs} ms ` +
          `instead of ${this.#sessionTimeoutMs} ms (the server's limits are 2 and 20 ticks)`,
      );
    }
    return session;
  }

  #tunnelWith(tls: TlsOptions): Tunnel {
    const identity = tlsIdentityOf(tls);
    const { servers } = this.#servers;
    // Each server gets its turn before we give up, and before the native client tries the next one by itself.
    const handshakeMs = Math.min(
      this.connectTimeoutMs / servers.length,
      this.#sessionTimeoutMs / 3,
    );
    return new Tunnel({ servers: this.#servers, identity, handshakeMs, warn: this.#warn });
  }

  #unreachable(cause?: Error): Error {
    const hosts = this.#servers.servers.map(({ host, port }) => `${host}:${port}`).join(",");
    const message =
      `no ZooKeeper server at ${hosts} answered within ${this.connectTimeoutMs} ms: ` +
      "check the address, and that a server runs there";
    const options = cause === undefined ? {} : { cause };
    return (
      this.#tunnel?.explain(message, options) ?? new ZooKeeperUnreachableError(message, options)
    );
  }
}

const onCaller = confirming(NativeClient.open, { clock: systemClock });

const onThisThread: OpenHandle = async (request, events) => {
  if (ClientThread.exists) {
    throw new ConfigurationError(
      'sessions of this process live on a thread of their own already: give `thread: "caller"` to every ZooKeeper',
    );
  }
  return onCaller(request, events);
};

function checkTimeout(name: string, value: number): number {
  if (!Number.isInteger(value) || value < 1 || value > TIMEOUT_MS_MAX) {
    throw new OptionError(
      `${name} must be a whole number of milliseconds, 1 or more; it is ${value}`,
    );
  }
  return value;
}
