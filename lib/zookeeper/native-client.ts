/**
 * The client of the npm package `zookeeper` behind promises with typed errors. It knows requests and events of one
 * native handle, and nothing of sessions' meaning.
 */
import type { Handle, HandleEvents, HandleRequest } from "./handle.js";
import {
  ANY_VERSION,
  type Callback,
  CREATE_FLAGS,
  DEAD,
  LOG_OFF,
  listen,
  loadPackage,
  type NativeStat,
  type Package,
  type PackageClient,
  SOCKET_CLOSED,
  statOf,
} from "./package-client.js";
import { requestError, ZK } from "./request-error.js";
import type { CreateMode, Stat } from "./session-port.js";

/** Pause before the network is asked again after it has refused every address at once, in milliseconds. */
const REFUSED_MS = 50;

/** One native handle. After {@link close} every call is answered with a SessionClosedError. */
export class NativeClient implements Handle {
  readonly #Package: Package;
  readonly #events: HandleEvents;
  #client: PackageClient;
  #target: HandleRequest | undefined;
  #closed = false;
  /** Another client is to go on with the session, and has not begun. */
  #resuming = false;
  #closing: Promise<void> | undefined;

  private constructor(Package: Package, events: HandleEvents) {
    this.#Package = Package;
    this.#events = events;
    this.#client = this.#newClient();
  }

  /**
   * Makes a handle that begins to connect.
   *
   * @throws NativeClientError when the package's native part was not built
   */
  static async open(
    request: HandleRequest,
    events: HandleEvents,
    load = loadPackage,
  ): Promise<NativeClient | undefined> {
    const handle = new NativeClient(await load(), events);
    handle.#target = request;
    if (await handle.#start()) return handle;
    await handle.close(); // it is dead from the start, and yet holds memory
    return undefined;
  }

  /** @internal A handle that is not started: every request on it fails. */
  static async load(events: HandleEvents): Promise<NativeClient> {
    return new NativeClient(await loadPackage(), events);
  }

  #newClient(): PackageClient {
    const client = new this.#Package({});
    const { connected, connecting, closed, watch } = this.#events;
    listen(client, {
      isInUse: () => client === this.#client,
      connected,
      connecting,
      watch,
      closed: () => {
        this.#closed = true;
        closed();
      },
    });
    return client;
  }

  /**
   * In a turn of its own, and never from inside a callback of another handle: a handle that is being closed calls back
   * while its socket is closed and still watched, and a new socket with the same number would crash the process.
   */
  #start(session: object = {}): Promise<boolean> {
    return new Promise((resolve) => {
      setImmediate(() => {
        const { address: connect = "", sessionTimeoutMs: timeout } = this.#target ?? {};
        if (!this.#closed) {
          this.#client.init({ connect, timeout, debug_level: LOG_OFF, ...session });
        }
        resolve(this.#client.state !== DEAD);
      });
    });
  }

  /**
   * A request that cannot be sent makes the client close its socket inside the call and tell nobody; until its next
   * ping it watches the number of a socket that is closed, and another handle that gets this number crashes the
   * process. So another client goes on with the session at once, as after any broken connection.
   */
  #replace(): void {
    const { client_id, client_password } = this.#client;
    const old = this.#client;
    this.#client = this.#newClient();
    this.#events.connecting();
    old.close(); // what was asked of it is answered as lost
    void this.#resume({ client_id, client_password });
  }

  async #resume(session: object): Promise<void> {
    this.#resuming = true;
    while (!(await this.#start(session)) && !this.#closed) {
      await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
      this.#client.close();
      this.#client = this.#newClient();
    }
    this.#resuming = false;
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#request<[string], string>(
      "create",
      path,
      (client, done) => client.a_create(path, Buffer.from(data), CREATE_FLAGS[mode], done),
      (created) => created,
    );
  }

  exists(path: string): Promise<Stat> {
    return this.#request<[NativeStat], Stat>(
      "exists",
      path,
      (client, done) => client.a_exists(path, false, done),
      statOf,
    );
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }> {
    return this.#request<[NativeStat, Buffer | null], { data: string; stat: Stat }>(
      "read",
      path,
      (client, done) => client.a_get(path, watch, done),
      (stat, data) => ({
        data: data === null ? "" : Buffer.from(data).toString("utf8"),
        stat: statOf(stat),
      }),
    );
  }

  list(path: string): Promise<{ children: string[]; stat: Stat }> {
    return this.#request<[string[], NativeStat], { children: string[]; stat: Stat }>(
      "list",
      path,
      (client, done) => client.a_get_children2(path, false, done),
      (children, stat) => ({ children, stat: statOf(stat) }),
    );
  }

  delete(path: string): Promise<void> {
    return this.#request<[], void>(
      "delete",
      path,
      (client, done) => client.a_delete_(path, ANY_VERSION, done),
      () => undefined,
    );
  }

  sync(path: string): Promise<void> {
    return this.#request<[string], void>(
      "sync",
      path,
      (client, done) => client.a_sync(path, done),
      () => undefined,
    );
  }

  /** Answers after at most 1.5 seconds with a server that is frozen, and blocks this thread meanwhile. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      const dead = this.#closed;
      this.#closed = true;
      // A fresh turn: the package's client must not be closed from inside one of its own callbacks.
      setImmediate(() => {
        if (!dead) this.#client.close();
        resolve();
      });
    });
    return this.#closing;
  }

  /** The package reports a failure in two ways: through the callback, and as the call's own return value. */
  #request<Result extends unknown[], T>(
    operation: string,
    path: string,
    send: (client: PackageClient, done: Callback<Result>) => number,
    pick: (...result: Result) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(requestError(operation, path, ZK.closing, "closed"));
        return;
      }
      const client = this.#client;
      const sent = send(client, (code, text, ...result) => {
        if (code === ZK.ok) resolve(pick(...result));
        else reject(requestError(operation, path, this.#meaningOf(code, client), text));
      });
      if (sent !== ZK.ok) {
        const code = this.#meaningOf(sent, client);
        reject(requestError(operation, path, code, "refused by the client"));
      }
      if (client === this.#client && client.state === SOCKET_CLOSED) this.#replace();
    });
  }

  /**
   * A client that was replaced was closed by us, and the one after it refuses what comes before it has begun. The
   * session goes on all the same: for its requests the connection broke, and nobody may take it for over.
   */
  #meaningOf(code: number, client: PackageClient): number {
    const isBetween = client !== this.#client || this.#resuming;
    const saysOver = code === ZK.closing || code === ZK.invalidState;
    return saysOver && isBetween && !this.#closed ? ZK.connectionLoss : code;
  }
}
