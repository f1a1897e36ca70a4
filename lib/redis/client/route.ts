/**
 * The way to the server that has a key: one server, the primary that sentinels name, or a node of a cluster. The files
 * of this folder are the only ones that import `ioredis`.
 */
import type { Redis } from "ioredis";

/** A connection to one server. */
export type Node = Redis;

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
  /** Once connected: for each server that takes writes, a key that it has. */
  keyOfEach(): string[];
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
