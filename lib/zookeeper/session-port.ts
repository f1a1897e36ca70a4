/**
 * What recipes see of a ZooKeeper session: requests with typed errors, states, and watches by path.
 * The real one is `session.ts`; a simulated one can stand behind the same interface.
 */
import type { Clock } from "../clock.js";
import type { Deadline } from "../deadline.js";
import type { Acl } from "./access.js";

/**
 * CONNECTED: the server answers. SUSPENDED: the connection is broken, the session may still live.
 * LOST: the session has expired or was given up, for good. CLOSED: closed by this process, for good.
 */
export type SessionState = "CONNECTED" | "SUSPENDED" | "LOST" | "CLOSED";

/** The parts of a znode's stat that recipes use. */
export interface Stat {
  /** Transaction that created the znode, as the npm client gives it: check before use. */
  czxid: number;
  /** Session that owns an ephemeral znode, in hexadecimal; "0" for a znode that is not ephemeral. */
  ephemeralOwner: string;
  /** Wall-clock time of creation by the server, in milliseconds; for people only. */
  createdAtMs: number;
  /** How often the access control list was set since the znode was made. */
  aclVersion: number;
  /** How often a child was made or deleted. */
  childVersion: number;
}

export type CreateMode = "persistent" | "container" | "ephemeralSequential";

/** One ZooKeeper session. All requests reject with a subclass of ZooKeeperRequestError. */
export interface Session {
  readonly clock: Clock;
  /** Session id in hexadecimal, as in a stat's `ephemeralOwner`. */
  readonly id: string;
  readonly state: SessionState;
  /** What the server granted, in milliseconds; not what was asked for. */
  readonly negotiatedTimeoutMs: number;
  /** Monotonic time at which the last exchange that the server confirmed was *started*. */
  readonly lastConfirmedAtMs: number;

  /** What the znodes that we make are to be given; undefined: nothing, so that anybody may do anything with them. */
  readonly protection: Acl | undefined;

  /** Makes a znode; gives its full path, with the number the server appended. */
  create(path: string, data: string, mode: CreateMode): Promise<string>;
  /**
   * Children (names only, in no order) and stat of a znode, from one moment. A watch on them goes off once, at the next
   * child that is made or deleted.
   */
  list(path: string, options?: { watch: boolean }): Promise<{ children: string[]; stat: Stat }>;
  /** Data and stat of a znode. Leaves no watch behind when there is no such znode. */
  read(path: string, options?: { watch: boolean }): Promise<{ data: string; stat: Stat }>;
  delete(path: string): Promise<void>;
  /** Waits until the server that we read from has seen all writes up to now. */
  sync(path: string): Promise<void>;
  /**
   * Sets the access control list of a znode; that the list never was set is version 0, and -1 stands for any version.
   *
   * @throws BadVersionError when the list has another version
   */
  setAcl(path: string, acl: Acl, version: number): Promise<void>;

  /** Calls back on each change of state, in order; gives a function that stops it. */
  onState(listener: (state: SessionState) => void): () => void;
  /**
   * Calls back on each watch event for the path, and gives a function that stops it. An event says "look again" and
   * nothing more; session events never come through here.
   */
  onWatch(path: string, listener: () => void): () => void;
  /** Gives the session up: LOST from now on, and no more reconnects, which could keep it alive at the server. */
  giveUp(): void;
  /** Keeps the session's last confirmed exchange recent while somebody needs it; gives a function that ends it. */
  keepConfirmed(): () => void;
}

/** Where recipes get sessions from: the living one, or a fresh one after a loss. */
export interface SessionSource {
  readonly clock: Clock;
  /**
   * @throws ZooKeeperUnreachableError when no server answers before the deadline or the connect timeout
   * @throws the signal's reason when it aborts first
   */
  session(deadline: Deadline, signal?: AbortSignal): Promise<Session>;
}
