/**
 * One ZooKeeper session over one handle: states, watches by path, and what the server last confirmed.
 * It never becomes another session; after LOST or CLOSED a fresh one has to be opened.
 */
import type { Clock } from "../clock.js";
import { SessionClosedError } from "../errors.js";
import { sessionChannel } from "../telemetry/channels.js";
import type { Acl } from "./access.js";
import { EventQueue } from "./event-queue.js";
import type { ConfirmedHandle, Granted, HandleEvents } from "./handle.js";
import { ZK } from "./request-error.js";
import type { CreateMode, Session, SessionState, Stat } from "./session-port.js";
import { WatchListeners } from "./watch-listeners.js";
import { Watchdog } from "./watchdog.js";

export class HandleSession implements Session {
  readonly clock: Clock;
  readonly protection: Acl | undefined;
  #handle: ConfirmedHandle | undefined;
  #opening: Promise<ConfirmedHandle | undefined> = Promise.resolve(undefined);
  #state: SessionState = "SUSPENDED";
  #granted: Granted = { sessionId: "", timeoutMs: 0 };
  #refused = false;
  #keepers = 0;
  #onFirstConnection = () => {};
  #closing: Promise<void> | undefined;
  readonly #events = new EventQueue();
  readonly #stateListeners = new Set<(state: SessionState) => void>();
  readonly #watchListeners = new WatchListeners();
  readonly #watchdog: Watchdog;

  /** @internal Use `openSession`. */
  constructor(clock: Clock, protection?: Acl) {
    this.clock = clock;
    this.protection = protection;
    this.#watchdog = new Watchdog({
      clock,
      timeoutMs: () => this.negotiatedTimeoutMs,
      lastConfirmedAtMs: () => this.lastConfirmedAtMs,
      ask: () => {
        if (this.#state === "CONNECTED") this.sync("/").catch(() => {}); // silence is what counts
      },
      giveUp: () => this.giveUp(),
    });
  }

  /** What the handle is to tell this session. */
  readonly handleEvents: HandleEvents = {
    connected: (granted) => this.#onConnected(granted),
    connecting: () => this.#moveTo("SUSPENDED"),
    refused: () => {
      this.#refused = true;
    },
    closed: () => this.giveUp(),
    watch: (path) => this.#events.push(() => this.#watchListeners.of(path)),
  };

  /** Resolves with the first connection. */
  readonly connected = new Promise<void>((resolve) => {
    this.#onFirstConnection = resolve;
  });

  /** Takes the handle over when it is open. */
  async use(opening: Promise<ConfirmedHandle | undefined>): Promise<ConfirmedHandle | undefined> {
    this.#opening = opening;
    this.#handle = await opening;
    return this.#handle;
  }

  /** The session has been shown to work, and is watched over from now on. */
  begin(): void {
    this.#watchdog.start();
  }

  /** The server did not accept our credentials. */
  get refused(): boolean {
    return this.#refused;
  }

  get id(): string {
    return this.#granted.sessionId;
  }

  get state(): SessionState {
    return this.#state;
  }

  get negotiatedTimeoutMs(): number {
    return this.#granted.timeoutMs;
  }

  get lastConfirmedAtMs(): number {
    return this.#handle?.lastConfirmedAtMs ?? Number.NEGATIVE_INFINITY;
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#ask("create", path, (handle) => handle.create(path, data, mode));
  }

  list(path: string, { watch } = { watch: false }): Promise<{ children: string[]; stat: Stat }> {
    return this.#ask("list", path, (handle) => handle.list(path, watch));
  }

  read(path: string, { watch } = { watch: false }): Promise<{ data: string; stat: Stat }> {
    return this.#ask("read", path, (handle) => handle.read(path, watch));
  }

  delete(path: string): Promise<void> {
    return this.#ask("delete", path, (handle) => handle.delete(path));
  }

  sync(path: string): Promise<void> {
    return this.#ask("sync", path, (handle) => handle.sync(path));
  }

  setAcl(path: string, acl: Acl, version: number): Promise<void> {
    return this.#ask("setAcl", path, (handle) => handle.setAcl(path, acl, version));
  }

  onState(listener: (state: SessionState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  onWatch(path: string, listener: () => void): () => void {
    return this.#watchListeners.add(path, listener);
  }

  keepConfirmed(): () => void {
    this.#keepers += 1;
    if (this.#keepers === 1) this.#handle?.keepConfirmed(true);
    let kept = true;
    return () => {
      if (!kept) return;
      kept = false;
      this.#keepers -= 1;
      if (this.#keepers === 0) this.#handle?.keepConfirmed(false);
    };
  }

  /** How many listen to states, and the paths that somebody watches. For tests. */
  get listeners(): { states: number; paths: string[] } {
    return { states: this.#stateListeners.size, paths: this.#watchListeners.paths };
  }

  giveUp(): void {
    this.#moveTo("LOST");
    void this.#end();
  }

  /** Ends the session at the server where one is connected; bounded, and safe to call again and from any callback. */
  close(): Promise<void> {
    this.#moveTo("CLOSED");
    return this.#end();
  }

  async #end(): Promise<void> {
    this.#watchdog.end();
    this.#closing ??= this.#opening.then((handle) => handle?.close());
    await this.#closing.catch(() => {}); // it never opened, which whoever opened it has been told
  }

  #ask<T>(
    operation: string,
    path: string,
    send: (handle: ConfirmedHandle) => Promise<T>,
  ): Promise<T> {
    const over = this.#state === "LOST" || this.#state === "CLOSED";
    if (this.#handle !== undefined && !over) return send(this.#handle);
    const message = `the ZooKeeper session is ${this.#state}: ${operation} ${path} was not sent`;
    return Promise.reject(new SessionClosedError(message, operation, path, ZK.closing));
  }

  #onConnected(granted: Granted): void {
    if (this.id !== "" && this.id !== granted.sessionId) {
      this.giveUp(); // a server that answers with another session: everything of the old one is dead
      return;
    }
    this.#granted = granted;
    this.#onFirstConnection();
    this.#moveTo("CONNECTED");
  }

  #moveTo(state: SessionState): void {
    if (this.#state === state || this.#state === "LOST" || this.#state === "CLOSED") return;
    const previous = this.#state;
    this.#state = state;
    if (this.id !== "" && sessionChannel.hasSubscribers) {
      sessionChannel.publish({ session: this.id, state, previous });
    }
    this.#events.push(() => [...this.#stateListeners].map((tell) => () => tell(state)));
  }
}
