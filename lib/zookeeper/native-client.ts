/**
 * The client of the npm package `zookeeper` behind promises with typed errors. It knows requests and events of one
 * native handle, and nothing of sessions' meaning.
 */
import type { Handle, HandleEvents, HandleRequest } from "./handle.js";
import { NativeRequests } from "./native-requests.js";
import {
  type Callback,
  DEAD,
  LOG_OFF,
  listen,
  loadPackage,
  type Package,
  type PackageClient,
  SOCKET_CLOSED,
} from "./package-client.js";
import { requestError, ZK } from "./request-error.js";

/** Pause before the network is asked again after it has refused every address at once, in milliseconds. */
const REFUSED_MS = 50;

/** One native handle. After {@link close} every call is answered with a SessionClosedError. */
export class NativeClient extends NativeRequests implements Handle {
  readonly #Package: Package;
  readonly #events: HandleEvents;
  #client: PackageClient;
  #target: HandleRequest | undefined;
  #closed = false;
  /** Another client is to go on with the session, and has not begun. */
  #resuming = false;
  #refused = false;
  #closing: Promise<void> | undefined;

  private constructor(Package: Package, events: HandleEvents) {
    super();
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
      refused: () => {
        this.#refused = true;
        this.#events.refused();
      },
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
          this.#authenticate();
        }
        resolve(this.#client.state !== DEAD);
      });
    });
  }

  /**
   * Before the first connection is there: the client keeps the credentials, and sends them ahead of every request, at
   * each reconnect too. That the server does not accept them is told by the end of the handle, and by nothing before.
   */
  #authenticate(): void {
    const { credentials } = this.#target ?? {};
    if (credentials === undefined || this.#client.state === DEAD) return;
    this.#client.add_auth(credentials.scheme, credentials.secret, () => {});
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
  protected override request<Result extends unknown[], T>(
    operation: string,
    path: string,
    send: (client: PackageClient, done: Callback<Result>) => number,
    pick: (...result: Result) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        const code = this.#refused ? ZK.authFailed : ZK.closing;
        reject(requestError(operation, path, code, "closed"));
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
    if (code === ZK.closing && this.#refused) return ZK.authFailed;
    const isBetween = client !== this.#client || this.#resuming;
    const saysOver = code === ZK.closing || code === ZK.invalidState;
    return saysOver && isBetween && !this.#closed ? ZK.connectionLoss : code;
  }
}
