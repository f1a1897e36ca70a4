/**
 * The way to the server that has a key: one server, the primary that sentinels name, or a node of a cluster. The files
 * of this folder are the only ones that import `ioredis`.
 */
import type { Redis } from "ioredis";

/** A connection to one server. */
export type Node = Redis;

/** One of the servers that share the keys. */
export interface ServerPlace {
  /** `host:port`. */
  place: string;
  /** A key that it has. */
  key: string;
}

export interface Route {
  /** `host:port`, for messages. */
  readonly place: string;
  /** The connection to the server that has the key, when it can be used at once. */
  ready(key: string): Node | undefined;
  /**
   * Connects, or looks for the server again.
   *
   * @throws the fault of the connect; ConfigurationError when the server has no such database
   */
  connect(key: string): Promise<void>;
  /** Once connected: the servers that take writes. */
  servers(): ServerPlace[];
  /** The first fault of the connect under way; ioredis tells it through its event only. */
  readonly fault: Error | undefined;
  /**
   * Follows the redirections of a cluster, for what a server has refused because it does not have the key; undefined
   * where there are none.
   */
  readonly redirected: Node | undefined;
  /** A server did not take a request: the next connect looks where the key is now. */
  doubt(key: string): void;
  /** Whether a server that was not seen before is another one in place of the last one. */
  replaces(identity: string): boolean;
  /** Says goodbye, and ends all sockets, in bounded time. */
  end(): Promise<void>;
}
