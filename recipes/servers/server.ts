/** What the caller of this folder sees of a server, wherever it comes from. */

/** Where servers come from: addresses of the user's, containers, or programs of this machine. */
export type ServerSource = "given" | "docker" | "programs";

/** One server. Those that were given are never touched: `stop` leaves them alone and every fault is refused. */
export interface Server extends AsyncDisposable {
  readonly source: ServerSource;
  /** Where it can be reached now. In Docker the port may be another one after a restart: read it again. */
  readonly host: string;
  readonly port: number;
  /** Only of a program. */
  readonly pid: number | undefined;
  /** Stops it where it stands, as a long pause does; its connections stay open. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it at once, as a crash does. Its data stay. */
  kill(): Promise<void>;
  /** Ends it if it runs, starts it on the same data, and waits until it answers. */
  restart(): Promise<void>;
  /** The end of what it wrote to its log. */
  logTail(): Promise<string>;
  /** Ends it and removes all that it left. */
  stop(): Promise<void>;
}

export interface ZooKeeperServer extends Server {
  /** Connection string, as `host:port`. */
  readonly connect: string;
}

export interface RedisServer extends Server {
  readonly url: string;
}

/** One ZooKeeper and one Redis. */
export interface Servers extends AsyncDisposable {
  /** Of those that were started; `given` when none was. */
  readonly source: ServerSource;
  readonly zookeeper: ZooKeeperServer;
  readonly redis: RedisServer;
  stop(): Promise<void>;
}

/** What every way of starting a server takes. */
export interface StartContext {
  /** Gets a line for people whenever something takes time or is not as expected. */
  say: (line: string) => void;
  signal?: AbortSignal | undefined;
  /** Of the whole start, without fetching what is missing. */
  startTimeoutMs: number;
}
