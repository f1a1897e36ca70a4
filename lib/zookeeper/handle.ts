/**
 * What a session needs of a ZooKeeper client's handle: requests, events, and a bounded close. The real one is
 * `native-client.ts`, on this thread or behind `thread/`; a simulated one can stand in its place.
 */
import type { Acl, Credentials } from "./access.js";
import type { CreateMode, Stat } from "./session-port.js";

/** What the server granted with a connection. */
export interface Granted {
  /** In hexadecimal, as in a stat's `ephemeralOwner`. */
  sessionId: string;
  /** The negotiated session timeout, in milliseconds. */
  timeoutMs: number;
}

/** What a handle tells, in the order in which it happened. */
export interface HandleEvents {
  /** Connected, also after each reconnect. */
  connected(granted: Granted): void;
  /** The connection broke; the client looks for another server by itself. */
  connecting(): void;
  /** The server does not accept our credentials; `closed` follows. */
  refused(): void;
  /** The handle is dead for good: expired, refused, or closed. */
  closed(): void;
  /** A watch on the path has fired. */
  watch(path: string): void;
}

/**
 * One handle of one session, used until it is closed. All requests reject with a subclass of ZooKeeperRequestError, and
 * are sent in the order of the calls.
 */
export interface Handle {
  /** Makes a znode; gives its full path, with the number the server appended. */
  create(path: string, data: string, mode: CreateMode): Promise<string>;
  exists(path: string): Promise<Stat>;
  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }>;
  list(path: string, watch: boolean): Promise<{ children: string[]; stat: Stat }>;
  delete(path: string): Promise<void>;
  sync(path: string): Promise<void>;
  /**
   * Sets the access control list of a znode. There is no call that reads one: the npm package's ends the whole process
   * with a fault of memory whenever it fails (seen in its source, 7.3), by a broken connection too.
   *
   * @param version that the list must have for that; -1: any
   */
  setAcl(path: string, acl: Acl, version: number): Promise<void>;
  /** Ends the session where a server is connected; bounded, and safe to call again. Not from inside an event. */
  close(): Promise<void>;
}

/** A handle that also notes what the server confirmed, and asks it while that is needed. */
export interface ConfirmedHandle extends Handle {
  /** Monotonic time at which the last exchange that the server confirmed was started; -Infinity before the first. */
  readonly lastConfirmedAtMs: number;
  /** Whether the server is to be asked when nothing else has been for a while. */
  keepConfirmed(kept: boolean): void;
}

export interface HandleRequest {
  /** `host:port,…/chroot` */
  address: string;
  /** Session timeout to ask for, in milliseconds. */
  sessionTimeoutMs: number;
  /** Proved before any request, and again after each reconnect. */
  credentials?: Credentials | undefined;
}

/** Makes a handle that begins to connect; undefined when it cannot even begin, because no address could be used. */
export type OpenHandle<H extends Handle = ConfirmedHandle> = (
  request: HandleRequest,
  events: HandleEvents,
) => Promise<H | undefined>;
