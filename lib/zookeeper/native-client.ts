/**
 * The npm package `zookeeper` behind promises with typed errors; the only file that imports it.
 * It knows requests and events of one native handle, and nothing of sessions' meaning.
 */
import { NativeClientError } from "../errors.js";
import { requestError, ZK } from "./request-error.js";

/** A znode's stat as the package gives it. */
export interface NativeStat {
  czxid: number;
  ephemeralOwner: string;
  ctime: Date;
}

type Callback<T extends unknown[]> = (code: number, text: string, ...result: T) => void;

/** What we use of the package's class, which is typed more loosely. */
interface PackageClient {
  readonly client_id: string;
  readonly timeout: number;
  readonly state: number;
  init(config: object): unknown;
  close(): void;
  a_create(path: string, data: Buffer, flags: number, done: Callback<[string]>): number;
  a_exists(path: string, watch: boolean, done: Callback<[NativeStat]>): number;
  a_get(path: string, watch: boolean, done: Callback<[NativeStat, Buffer | null]>): number;
  a_get_children2(path: string, watch: boolean, done: Callback<[string[], NativeStat]>): number;
  a_delete_(path: string, version: number, done: Callback<[]>): number;
  a_sync(path: string, done: Callback<[string]>): number;
  on(event: string, listener: (client: unknown, detail: unknown) => void): void;
}

/** Flags of a create (zookeeper.h). */
export const CREATE_FLAGS = { persistent: 0, ephemeralSequential: 3, container: 4 } as const;

/** Any version: a delete that does not compare. */
const ANY_VERSION = -1;

/** The client's own log goes to standard output, where results belong: it is off. */
const LOG_OFF = 0;

/** What the native handle tells; `detail` is a path for watch events and a code for `close`. */
export interface NativeEvents {
  /** Connected, also after each reconnect. */
  connected(): void;
  /** The connection broke; the client looks for another server by itself. */
  connecting(): void;
  /** The handle is dead for good: expired, refused, or closed by us. */
  closed(code: number): void;
  /** A watch on the path has fired. */
  watch(path: string): void;
}

/** One native handle. After {@link close} every call is answered with a SessionClosedError. */
export class NativeClient {
  readonly #client: PackageClient;
  #started = false;
  #closed = false;

  private constructor(client: PackageClient, events: NativeEvents) {
    this.#client = client;
    client.on("connect", () => events.connected());
    client.on("connecting", () => events.connecting());
    client.on("close", (_client, code) => {
      this.#closed = true;
      events.closed(Number(code));
    });
    for (const name of ["created", "deleted", "changed", "child", "notwatching"]) {
      client.on(name, (_client, path) => events.watch(String(path)));
    }
  }

  /**
   * Loads the package and makes a handle that is not yet connected.
   *
   * @throws NativeClientError when the package's native part was not built
   */
  static async load(events: NativeEvents): Promise<NativeClient> {
    let Package: new (config: object) => unknown;
    try {
      ({ default: Package } = await import("zookeeper"));
    } catch (cause) {
      throw new NativeClientError(
        "the native ZooKeeper client is not built: install g++, make and python3, then run `npm rebuild zookeeper`",
        { cause },
      );
    }
    return new NativeClient(new Package({}) as PackageClient, events);
  }

  /** Begins to connect; false when the client cannot even start (no address could be used). */
  start(connect: string, timeoutMs: number): boolean {
    this.#client.init({ connect, timeout: timeoutMs, debug_level: LOG_OFF });
    this.#started = this.#client.state !== 0;
    return this.#started;
  }

  get sessionId(): string {
    return this.#client.client_id;
  }

  /** The negotiated session timeout in milliseconds; meaningful once connected. */
  get timeoutMs(): number {
    return this.#client.timeout;
  }

  create(path: string, data: string, flags: number): Promise<string> {
    return this.#request<[string], string>(
      "create",
      path,
      (done) => this.#client.a_create(path, Buffer.from(data), flags, done),
      (created) => created,
    );
  }

  exists(path: string): Promise<NativeStat> {
    return this.#request<[NativeStat], NativeStat>(
      "exists",
      path,
      (done) => this.#client.a_exists(path, false, done),
      (stat) => stat,
    );
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: NativeStat }> {
    return this.#request<[NativeStat, Buffer | null], { data: string; stat: NativeStat }>(
      "read",
      path,
      (done) => this.#client.a_get(path, watch, done),
      (stat, data) => ({ data: data === null ? "" : Buffer.from(data).toString("utf8"), stat }),
    );
  }

  list(path: string): Promise<{ children: string[]; stat: NativeStat }> {
    return this.#request<[string[], NativeStat], { children: string[]; stat: NativeStat }>(
      "list",
      path,
      (done) => this.#client.a_get_children2(path, false, done),
      (children, stat) => ({ children, stat }),
    );
  }

  delete(path: string): Promise<void> {
    return this.#request<[], void>(
      "delete",
      path,
      (done) => this.#client.a_delete_(path, ANY_VERSION, done),
      () => undefined,
    );
  }

  sync(path: string): Promise<void> {
    return this.#request<[string], void>(
      "sync",
      path,
      (done) => this.#client.a_sync(path, done),
      () => undefined,
    );
  }

  /**
   * Closes the handle and, where a server is connected, the session; answers after at most 1.5 seconds with a server
   * that is frozen. Must not be called from inside a callback of this handle.
   */
  close(): void {
    if (this.#closed || !this.#started) return;
    this.#closed = true;
    this.#client.close();
  }

  /** The package reports a failure in two ways: through the callback, and as the call's own return value. */
  #request<Result extends unknown[], T>(
    operation: string,
    path: string,
    send: (done: Callback<Result>) => number,
    pick: (...result: Result) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(requestError(operation, path, ZK.closing, "closed"));
        return;
      }
      const sent = send((code, text, ...result) => {
        if (code === ZK.ok) resolve(pick(...result));
        else reject(requestError(operation, path, code, text));
      });
      if (sent !== ZK.ok) reject(requestError(operation, path, sent, "refused by the client"));
    });
  }
}
