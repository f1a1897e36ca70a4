/**
 * One ZooKeeper session over one native handle: states, watches by path, and what the server last confirmed.
 * It never becomes another session; after LOST or CLOSED a fresh one has to be opened.
 */
import type { Clock } from "../clock.js";
import { type Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import {
  ConfigurationError,
  NoNodeError,
  ZooKeeperRequestError,
  ZooKeeperUnreachableError,
} from "../errors.js";
import { Confirmation } from "./confirmation.js";
import { type ConnectString, formatConnectString } from "./connect-string.js";
import { CREATE_FLAGS, NativeClient, type NativeStat } from "./native-client.js";
import type { CreateMode, Session, SessionState, Stat } from "./session-port.js";
import { WatchListeners } from "./watch-listeners.js";

export interface OpenSessionOptions {
  servers: ConnectString;
  /** What is asked for; the server may grant another. */
  sessionTimeoutMs: number;
  clock: Clock;
  deadline: Deadline;
  /** Gives up opening. */
  signal: AbortSignal;
}

/**
 * Opens a session with a fresh native handle.
 *
 * @throws ZooKeeperUnreachableError when no server has answered before the deadline
 * @throws ConfigurationError when the chroot does not exist
 */
export async function openSession(options: OpenSessionOptions): Promise<NativeSession> {
  const session = await NativeSession.load(options.clock);
  try {
    await session.start(options);
    return session;
  } catch (error) {
    await session.close();
    throw error;
  }
}

export class NativeSession implements Session {
  readonly clock: Clock;
  #native!: NativeClient;
  #state: SessionState = "SUSPENDED";
  #id = "";
  #negotiatedTimeoutMs = 0;
  readonly #stateListeners = new Set<(state: SessionState) => void>();
  readonly #watchListeners = new WatchListeners();
  #connected = deferred();
  readonly #confirmation: Confirmation;
  #closing: Promise<void> | undefined;

  private constructor(clock: Clock) {
    this.clock = clock;
    this.#confirmation = new Confirmation({
      clock,
      timeoutMs: () => this.#negotiatedTimeoutMs,
      // a sync goes to the leader and back, so its reply says more than that one follower still answers
      ask: () => (this.#state === "CONNECTED" ? this.sync("/") : undefined),
    });
  }

  /** @internal Use {@link openSession}. */
  static async load(clock: Clock): Promise<NativeSession> {
    const session = new NativeSession(clock);
    session.#native = await NativeClient.load({
      connected: () => session.#onConnected(),
      connecting: () => session.#moveTo("SUSPENDED"),
      closed: () => session.#moveTo("LOST"),
      watch: (path) => session.#onWatchFired(path),
    });
    return session;
  }

  /** @internal Use {@link openSession}. */
  async start(options: OpenSessionOptions): Promise<void> {
    const { servers, sessionTimeoutMs, deadline, signal } = options;
    const address = formatConnectString(servers);
    const unreachable = (why: string) =>
      new ZooKeeperUnreachableError(
        `no ZooKeeper server at ${address} ${why}: check the address, and that a server runs there`,
      );
    if (!this.#native.start(address, sessionTimeoutMs)) throw unreachable("could be used");
    if ((await settleWithin(this.#connected.promise, deadline, signal)) === TIMED_OUT) {
      throw unreachable("answered in time");
    }
    // The first exchange whose start we know; it also shows whether the chroot is there.
    try {
      if ((await settleWithin(this.#confirm(), deadline, signal)) === TIMED_OUT) {
        throw unreachable("answered a first request in time");
      }
    } catch (error) {
      if (error instanceof NoNodeError) {
        throw new ConfigurationError(
          `the chroot ${servers.chroot} of the ZooKeeper address does not exist: create it, or correct the address`,
          { cause: error },
        );
      }
      if (error instanceof ZooKeeperRequestError) throw unreachable("kept the connection");
      throw error;
    }
  }

  get id(): string {
    return this.#id;
  }

  get state(): SessionState {
    return this.#state;
  }

  get negotiatedTimeoutMs(): number {
    return this.#negotiatedTimeoutMs;
  }

  get lastConfirmedAtMs(): number {
    return this.#confirmation.lastAtMs;
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#confirmation.follow(this.#native.create(path, data, CREATE_FLAGS[mode]));
  }

  async list(path: string): Promise<{ children: string[]; stat: Stat }> {
    const { children, stat } = await this.#confirmation.follow(this.#native.list(path));
    return { children, stat: statOf(stat) };
  }

  async read(path: string, { watch } = { watch: false }): Promise<{ data: string; stat: Stat }> {
    const { data, stat } = await this.#confirmation.follow(this.#native.read(path, watch));
    return { data, stat: statOf(stat) };
  }

  delete(path: string): Promise<void> {
    return this.#confirmation.follow(this.#native.delete(path));
  }

  sync(path: string): Promise<void> {
    return this.#confirmation.follow(this.#native.sync(path));
  }

  onState(listener: (state: SessionState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  onWatch(path: string, listener: () => void): () => void {
    return this.#watchListeners.add(path, listener);
  }

  keepConfirmed(): () => void {
    return this.#confirmation.keep();
  }

  /** Ends the session at the server where one is connected; safe to call again and from any callback. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#confirmation.end();
      this.#moveTo("CLOSED");
      // A fresh turn: the native client must not be closed from inside one of its own callbacks.
      setImmediate(() => {
        this.#native.close();
        resolve();
      });
    });
    return this.#closing;
  }

  #onConnected(): void {
    const id = this.#native.sessionId;
    if (this.#id !== "" && this.#id !== id) {
      // A server that answers with another session: everything of the old one is dead.
      this.#moveTo("LOST");
      setImmediate(() => this.#native.close());
      return;
    }
    this.#id = id;
    this.#negotiatedTimeoutMs = this.#native.timeoutMs;
    this.#connected.resolve();
    this.#moveTo("CONNECTED");
  }

  #onWatchFired(path: string): void {
    for (const listener of this.#watchListeners.of(path)) queueMicrotask(listener);
  }

  #moveTo(state: SessionState): void {
    if (this.#state === state || this.#state === "LOST" || this.#state === "CLOSED") return;
    this.#state = state;
    if (state === "LOST") this.#confirmation.end();
    for (const listener of [...this.#stateListeners]) queueMicrotask(() => listener(state));
  }

  async #confirm(): Promise<void> {
    await this.#confirmation.follow(this.#native.exists("/"));
  }
}

function statOf(stat: NativeStat): Stat {
  return {
    czxid: stat.czxid,
    ephemeralOwner: stat.ephemeralOwner,
    createdAtMs: stat.ctime.getTime(),
  };
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
