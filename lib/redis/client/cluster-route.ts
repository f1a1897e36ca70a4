/**
 * The way to the node of a Redis Cluster that has a key. Requests go straight to that node; the cluster client keeps
 * the map of slots, and follows redirections while slots move.
 */
import { Cluster } from "ioredis";
import { type Clock, systemClock } from "../../clock.js";
import { Deadline, settleWithin } from "../../deadline.js";
import { slotOf, tagOfSlot } from "../slot.js";
import { clientOptions, QUIT_TIMEOUT_MS, type RouteOptions } from "./client-options.js";
import type { Node, Route, ServerPlace } from "./route.js";
import { tlsErrorOf } from "./tls-probe.js";

export class ClusterRoute implements Route {
  readonly place: string;
  readonly #cluster: Cluster;
  #connecting: Promise<void> | undefined;
  /** Nodes that are being connected, for all who wait for them. */
  readonly #opening = new Map<Node, Promise<void>>();
  #fault: Error | undefined;
  /** Nodes, by `host:port`, that may have lost their slots. */
  readonly #doubted = new Set<string>();
  readonly #identities = new Set<string>();

  constructor(
    readonly options: RouteOptions,
    readonly clock: Clock = systemClock,
  ) {
    const { address, natMap, connectTimeoutMs } = options;
    this.place = address.hosts.map(({ host, port }) => `${host}:${port}`).join(",");
    const common = clientOptions(options);
    this.#cluster = new Cluster(address.hosts, {
      ...{ lazyConnect: true, enableOfflineQueue: false, enableReadyCheck: false },
      ...{ slotsRefreshTimeout: connectTimeoutMs, clusterRetryStrategy: () => null },
      // what was sent is never sent again for us, unless a node has said that it is not its own
      ...{ retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 0 },
      // certificates are for names, and the map of slots has addresses only
      dnsLookup: (host, callback) => callback(null, host),
      ...{ redisOptions: common, scripts: common.scripts },
      ...(natMap && { natMap }),
    });
    this.#cluster.on("error", (error: Error & { lastNodeError?: Error }) => {
      this.#fault ??= error.lastNodeError ?? error;
    });
  }

  get fault(): Error | undefined {
    return this.#fault;
  }

  /** Any node of it follows redirections; the types of the two clients have what is called in common. */
  get redirected(): Node {
    return this.#cluster as unknown as Node;
  }

  ready(key: string): Node | undefined {
    if (this.#doubted.has(this.#nameOf(key) ?? "")) return undefined;
    const node = this.#nodeOf(key);
    return node?.status === "ready" ? node : undefined;
  }

  async connect(key: string): Promise<void> {
    this.#connecting ??= this.#connectOnce().finally(() => {
      this.#connecting = undefined;
    });
    await this.#connecting;
    const node = this.#nodeOf(key);
    if (node === undefined) throw new Error("no node of the cluster has the key's slot");
    if (node.status === "ready") return;
    const opening = this.#opening.get(node) ?? openNode(node);
    this.#opening.set(node, opening);
    await opening.finally(() => this.#opening.delete(node));
  }

  servers(): ServerPlace[] {
    const slots = new Map<string, number>();
    this.#cluster.slots.forEach(([name], slot) => {
      if (name !== undefined && !slots.has(name)) slots.set(name, slot);
    });
    return Array.from(slots, ([place, slot]) => ({ place, key: tagOfSlot(slot) }));
  }

  doubt(key: string): void {
    const name = this.#nameOf(key);
    if (name !== undefined) this.#doubted.add(name);
  }

  replaces(identity: string): boolean {
    const isNew = !this.#identities.has(identity);
    const isFirst = this.#identities.size < this.#cluster.nodes("master").length;
    this.#identities.add(identity);
    return isNew && !isFirst;
  }

  async end(): Promise<void> {
    if (this.#cluster.status === "ready") {
      const deadline = Deadline.after(QUIT_TIMEOUT_MS, this.clock);
      await settleWithin(this.#cluster.quit(), deadline).catch(() => {}); // they have gone before we said goodbye
    }
    this.#cluster.disconnect();
  }

  /** Connects, or reads the map of slots again. */
  async #connectOnce(): Promise<void> {
    this.#fault = undefined;
    const { status } = this.#cluster;
    if (status === "ready") {
      await new Promise<void>((resolve, reject) => {
        this.#cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
      });
    } else {
      try {
        await this.#cluster.connect();
      } catch (error) {
        const fault = this.#fault ?? (error as Error); // ioredis throws nothing else
        throw (await tlsErrorOf(fault, this.options)) ?? fault;
      }
    }
    this.#doubted.clear();
  }

  #nameOf(key: string): string | undefined {
    return this.#cluster.slots[slotOf(key)]?.[0];
  }

  #nodeOf(key: string): Node | undefined {
    const name = this.#nameOf(key);
    return this.#cluster
      .nodes("master")
      .find(({ options: { host, port } }) => `${host}:${port}` === name);
  }
}

async function openNode(node: Node): Promise<void> {
  if (node.status === "wait" || node.status === "end" || node.status === "close") {
    await node.connect();
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const settle = (error?: Error) => {
      node.off("ready", ready).off("end", ended);
      if (error) reject(error);
      else resolve();
    };
    const ready = () => settle();
    const ended = () => settle(new Error("the node of the cluster closed the connection"));
    node.on("ready", ready).on("end", ended);
  });
}
