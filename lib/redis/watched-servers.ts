/**
 * Watches keys on whichever server has them: in a cluster on several, each with two connections of its own.
 */
import type { Clock } from "../clock.js";
import { settleWithin, TIMED_OUT } from "../deadline.js";
import type { Limits } from "./attempt.js";
import type { Node } from "./client/route.js";
import { slotOf } from "./slot.js";
import { WatchedServer } from "./watched-server.js";
import type { Watcher } from "./watcher.js";

export interface WatchedServersOptions {
  clock: Clock;
  replyTimeoutMs: number;
  isCluster: boolean;
}

export class WatchedServers {
  /** By the connection that leads to the server. */
  readonly #servers = new Map<Node, WatchedServer>();

  constructor(readonly options: WatchedServersOptions) {}

  /**
   * Gives a function that ends the watch; undefined when the deadline passed.
   *
   * @throws the signal's reason, or the fault
   */
  async watch(
    { node, key, watcher }: { node: Node; key: string; watcher: Watcher },
    { deadline, signal }: Limits,
  ): Promise<(() => void) | undefined> {
    const begun = this.#on(node).watch(key, watcher);
    let stop: (() => void) | typeof TIMED_OUT = TIMED_OUT;
    try {
      stop = await settleWithin(begun, deadline, signal);
      return stop === TIMED_OUT ? undefined : stop;
    } finally {
      // nobody waits for it any more, whatever becomes of it
      if (stop === TIMED_OUT) void begun.then((end) => end()).catch(() => {}); // it is told already, or of no interest
    }
  }

  /** Ends all connections, and tells all who watch. */
  end(): void {
    for (const server of this.#servers.values()) server.end();
  }

  #on(node: Node): WatchedServer {
    const known = this.#servers.get(node);
    if (known !== undefined) return known;
    const { clock, replyTimeoutMs, isCluster } = this.options;
    const server = new WatchedServer({
      ...{ node, clock, replyTimeoutMs },
      partOf: isCluster ? slotOf : () => 0,
      onEnd: () => this.#servers.delete(node),
    });
    this.#servers.set(node, server);
    return server;
  }
}
