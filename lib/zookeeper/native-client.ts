/**
 * The npm package `zookeeper` behind promises with typed errors; the only file that imports it.
 * It knows requests and events of one native handle, and nothing of sessions' meaning.
 */
import { NativeClientError } from "../errors.js";
import type { Handle, HandleEvents, HandleRequest } from "./handle.js";
import { requestError, ZK } from "./request-error.js";
import type { CreateMode, Stat } from "./session-port.js";

/** A znode's stat as the package gives it. */
interface NativeStat {
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
const CREATE_FLAGS = { persistent: 0, ephemeralSequential: 3, container: 4 } as const;

/** Any version: a delete that does not compare. */
const ANY_VERSION = -1;

/** The client's own log goes to standard output, where results belong: it is off. */
const LOG_OFF = 0;

/** One native handle. After {@link close} every call is answered with a SessionClosedError. */
export class NativeClient implements Handle {
  readonly #client: PackageClient;
  #closed = false;
  #closing: Promise<void> | undefined;

  private constructor(client: PackageClient, events: HandleEvents) {
    this.#client = client;
    client.on("connect", () =>
      events.connected({ sessionId: client.client_id, timeoutMs: client.timeout }),
    );
    client.on("connecting", () => events.connecting());
    client.on("close", () => {
      this.#closed = true;
      events.closed();
    });
    for (const name of ["created", "deleted", "changed", "child", "notwatching"]) {
      client.on(name, (_client, path) => events.watch(String(path)));
    }
  }

  /**
   * Makes a handle that begins to connect.
   *
   * @throws NativeClientError when the package's native part was not built
   */
  static async open(
    request: HandleRequest,
    events: HandleEvents,
  ): Promise<NativeClient | undefined> {
    const handle = await NativeClient.load(events);
    if (await handle.#start(request)) return handle;
    await handle.close(); // it is dead from the start, and yet holds memory
    return undefined;
  }

  /** @internal A handle that is not started: every request on it fails. */
  static async load(events: HandleEvents): Promise<NativeClient> {
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

  /**
   * In a turn of its own, and never from inside a callback of another handle: a handle that is being closed calls back
   * while its socket is closed and still watched, and a new socket with the same number would crash the process.
   */
  #start({ address, sessionTimeoutMs }: HandleRequest): Promise<boolean> {
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#client.init({ connect: address, timeout: sessionTimeoutMs, debug_level: LOG_OFF });
        resolve(this.#client.state !== 0);
      });
    });
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#request<[string], string>(
      "create",
      path,
      (done) => this.#client.a_create(path, Buffer.from(data), CREATE_FLAGS[mode], done),
      (created) => created,
    );
  }

  exists(path: string): Promise<Stat> {
    return this.#request<[NativeStat], Stat>(
      "exists",
      path,
      (done) => this.#client.a_exists(path, false, done),
      statOf,
    );
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }> {
    return this.#request<[NativeStat, Buffer | null], { data: string; stat: Stat }>(
      "read",
      path,
      (done) => this.#client.a_get(path, watch, done),
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
      (done) => this.#client.a_get_children2(path, false, done),
      (children, stat) => ({ children, stat: statOf(stat) }),
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

function statOf({ czxid, ephemeralOwner, ctime }: NativeStat): Stat {
  return { czxid, ephemeralOwner, createdAtMs: ctime.getTime() };
}
