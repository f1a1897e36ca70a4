/**
 * A session as a process sees it: requests and replies travel, in order on one connection, and get lost with it. The
 * server's view and ours can differ, and only an exchange shows it.
 */
import type { Clock } from "../../lib/clock.js";
import { ZooKeeperRequestError } from "../../lib/errors.js";
import { Confirmation } from "../../lib/zookeeper/confirmation.js";
import { requestError, ZK } from "../../lib/zookeeper/request-error.js";
import type { CreateMode, Session, SessionState, Stat } from "../../lib/zookeeper/session-port.js";
import { WatchListeners } from "../../lib/zookeeper/watch-listeners.js";
import type { SimulatedProcess } from "./simulated-process.js";
import type { SimulatedZooKeeper } from "./simulated-zookeeper.js";

interface Pending {
  reject: (error: ZooKeeperRequestError) => void;
  operation: string;
  path: string;
}

/** Range of a message's time on its way, and of a reconnect, in milliseconds. */
const TRAVEL_MS = [1, 20] as const;
const RECONNECT_MS = [20, 600] as const;

export class SimulatedSession implements Session {
  readonly clock: Clock;
  readonly id: string;
  readonly negotiatedTimeoutMs: number;
  #state: SessionState = "CONNECTED";
  /** Counts connections: a message of an old one never arrives. */
  #connection = 1;
  #partitioned = false;
  #loses: string | undefined;
  #requestArrivesAtMs = 0;
  #replyArrivesAtMs = 0;
  readonly #pending = new Set<Pending>();
  readonly #stateListeners = new Set<(state: SessionState) => void>();
  readonly #watchListeners = new WatchListeners();
  readonly #confirmation: Confirmation;

  constructor(
    readonly process: SimulatedProcess,
    readonly server: SimulatedZooKeeper,
    timeoutMs: number,
  ) {
    this.clock = process;
    this.negotiatedTimeoutMs = timeoutMs;
    this.id = server.openSession(timeoutMs, (path) => this.#sendEvent(path));
    this.#confirmation = new Confirmation({
      clock: process,
      timeoutMs: () => timeoutMs,
      ask: () => (this.#state === "CONNECTED" ? this.sync("/") : undefined),
    });
    this.#ping();
  }

  get state(): SessionState {
    return this.#state;
  }

  get lastConfirmedAtMs(): number {
    return this.#confirmation.lastAtMs;
  }

  /** Listeners of ours that are left; 0 when everybody has gone. */
  get listeners(): number {
    return this.#stateListeners.size + this.#watchListeners.paths.length;
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#request("create", path, () => this.server.create(this.id, path, data, mode));
  }

  list(path: string): Promise<{ children: string[]; stat: Stat }> {
    return this.#request("list", path, () => this.server.list(path));
  }

  read(path: string, { watch } = { watch: false }): Promise<{ data: string; stat: Stat }> {
    return this.#request("read", path, () => this.server.read(this.id, path, watch));
  }

  delete(path: string): Promise<void> {
    return this.#request("delete", path, () => this.server.delete(path));
  }

  sync(path: string): Promise<void> {
    return this.#request("sync", path, () => undefined);
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

  /** Fault: the connection breaks; both sides notice, and what was under way is lost. */
  cut(): void {
    if (this.#state !== "CONNECTED") return;
    this.#connection += 1;
    this.process.receive(() => this.#disconnected());
  }

  /** Fault: the next request of this kind takes effect, and the connection breaks before its reply. */
  loseReplyOf(operation: string): void {
    this.#loses = operation;
  }

  /** Fault: messages of both directions are lost from now on, and nobody is told. */
  partition(): void {
    this.#partitioned = true;
    this.#connection += 1;
  }

  heal(): void {
    if (!this.#partitioned) return;
    this.#partitioned = false;
    this.process.receive(() => this.#disconnected());
  }

  close(): void {
    this.#confirmation.end();
    if (this.#state === "CONNECTED" && !this.#partitioned) this.server.endSession(this.id);
    this.#moveTo("CLOSED");
    this.#failPending(ZK.closing);
  }

  #request<T>(operation: string, path: string, apply: () => T): Promise<T> {
    return this.#confirmation.follow(
      new Promise<T>((resolve, reject) => {
        if (this.#state === "LOST" || this.#state === "CLOSED") {
          reject(requestError(operation, path, ZK.closing, "simulated"));
          return;
        }
        const pending: Pending = { reject, operation, path };
        this.#pending.add(pending);
        const connection = this.#connection;
        this.#requestArrivesAtMs = this.#travel(this.#requestArrivesAtMs, () => {
          if (connection !== this.#connection || this.#state === "SUSPENDED") return; // lost on its way
          this.#serve({ pending, connection, apply, resolve });
        });
      }),
    );
  }

  /** At the server. */
  #serve<T>(request: {
    pending: Pending;
    connection: number;
    apply: () => T;
    resolve: (value: T) => void;
  }): void {
    const { pending, connection, apply, resolve } = request;
    const alive = this.server.touch(this.id);
    let settle: () => void;
    try {
      if (!alive)
        throw requestError(pending.operation, pending.path, ZK.sessionExpired, "simulated");
      const value = apply();
      settle = () => resolve(value);
    } catch (error) {
      if (!(error instanceof ZooKeeperRequestError)) throw error;
      settle = () => pending.reject(error);
    }
    if (this.#loses === pending.operation) {
      this.#loses = undefined;
      this.cut();
      return;
    }
    this.#reply(connection, () => {
      if (!this.#pending.delete(pending)) return;
      settle();
      if (!alive) this.#lost();
    });
  }

  /** Replies and events share one connection and arrive in their order. */
  #reply(connection: number, arrive: () => void): void {
    this.#replyArrivesAtMs = this.#travel(this.#replyArrivesAtMs, () => {
      if (connection !== this.#connection) return;
      this.process.receive(arrive);
    });
  }

  #sendEvent(path: string): void {
    this.#reply(this.#connection, () => {
      for (const listener of this.#watchListeners.of(path)) listener();
    });
  }

  #travel(notBeforeMs: number, arrive: () => void): number {
    const { scheduler } = this.process;
    const atMs = Math.max(notBeforeMs, scheduler.nowMs() + scheduler.random.whole(...TRAVEL_MS));
    scheduler.after(atMs - scheduler.nowMs() + 0.001, arrive);
    return atMs + 0.001;
  }

  /** As the native client does on its own thread: a stopped process does not ping. */
  #ping(): void {
    this.process.after(this.negotiatedTimeoutMs / 3, () => {
      if (this.#state === "LOST" || this.#state === "CLOSED") return;
      if (this.#state === "CONNECTED" && !this.#partitioned) this.server.touch(this.id);
      else if (this.#partitioned) this.#disconnected();
      this.#ping();
    });
  }

  #disconnected(): void {
    if (this.#state !== "CONNECTED") return;
    this.#moveTo("SUSPENDED");
    this.#failPending(ZK.connectionLoss);
    this.#reconnectLater();
  }

  #reconnectLater(): void {
    const { scheduler } = this.process;
    this.process.after(scheduler.random.whole(...RECONNECT_MS), () => {
      if (this.#state !== "SUSPENDED") return;
      if (this.#partitioned) this.#reconnectLater();
      else if (this.server.touch(this.id)) this.#reconnected();
      else this.#lost();
    });
  }

  #reconnected(): void {
    this.#connection += 1;
    this.#moveTo("CONNECTED");
    // the client sets its watches again; a node that went meanwhile is told at once
    for (const path of this.#watchListeners.paths) {
      try {
        this.server.read(this.id, path, true);
      } catch {
        this.#sendEvent(path); // it is gone
      }
    }
  }

  #lost(): void {
    this.#confirmation.end();
    this.#moveTo("LOST");
    this.#failPending(ZK.sessionExpired);
  }

  #failPending(code: number): void {
    for (const { reject, operation, path } of [...this.#pending]) {
      reject(requestError(operation, path, code, "simulated"));
    }
    this.#pending.clear();
  }

  #moveTo(state: SessionState): void {
    if (this.#state === state || this.#state === "LOST" || this.#state === "CLOSED") return;
    this.#state = state;
    for (const listener of [...this.#stateListeners]) listener(state);
  }
}
