/**
 * A simulated ZooKeeper server: a tree of znodes, sessions that expire, one-shot data watches, transaction ids. It is
 * one server that is never wrong; what goes wrong on the way to it is the business of `simulated-session.ts`.
 */

import { requestError, ZK } from "../../lib/zookeeper/request-error.js";
import type { CreateMode, Stat } from "../../lib/zookeeper/session-port.js";
import type { Scheduler } from "./scheduler.js";

interface Node extends Stat {
  data: string;
  mode: CreateMode;
  /** Number that the next sequential child gets. */
  counter: number;
  /** Sessions that are told when the node is deleted. */
  watchers: Set<string>;
}

interface SessionRecord {
  timeoutMs: number;
  touchedAtMs: number;
  onWatch: (path: string) => void;
}

/** Sessions are looked through this often for expired ones, as a server does once a tick. */
const TICK_MS = 1_000;

export class SimulatedZooKeeper {
  readonly #nodes = new Map<string, Node>();
  readonly #sessions = new Map<string, SessionRecord>();
  #zxid = 0;
  #sessionCount = 0;

  constructor(readonly scheduler: Scheduler) {
    this.#nodes.set("", this.#newNode("", "persistent", "0"));
    this.#tick();
  }

  openSession(timeoutMs: number, onWatch: (path: string) => void): string {
    this.#sessionCount += 1;
    const id = (0x100000000 + this.#sessionCount).toString(16);
    this.#sessions.set(id, { timeoutMs, touchedAtMs: this.scheduler.nowMs(), onWatch });
    return id;
  }

  /** Notes that the session lives; false when it has expired. */
  touch(id: string): boolean {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.touchedAtMs = this.scheduler.nowMs();
    return session !== undefined;
  }

  endSession(id: string): void {
    if (!this.#sessions.delete(id)) return;
    for (const [path, node] of [...this.#nodes]) if (node.ephemeralOwner === id) this.#remove(path);
  }

  create(id: string, path: string, data: string, mode: CreateMode): string {
    const parentPath = path.slice(0, path.lastIndexOf("/"));
    const parent = this.#nodes.get(parentPath);
    if (parent === undefined) throw fault("create", path, ZK.noNode);
    const sequential = mode === "ephemeralSequential";
    const full = sequential ? path + String(parent.counter).padStart(10, "0") : path;
    if (this.#nodes.has(full)) throw fault("create", path, ZK.nodeExists);
    parent.counter += 1;
    this.#nodes.set(full, this.#newNode(data, mode, sequential ? id : "0"));
    return full;
  }

  list(path: string): { children: string[]; stat: Stat } {
    const node = this.#nodes.get(path);
    if (node === undefined) throw fault("list", path, ZK.noNode);
    return { children: this.childrenOf(path), stat: statOf(node) };
  }

  read(id: string, path: string, watch: boolean): { data: string; stat: Stat } {
    const node = this.#nodes.get(path);
    if (node === undefined) throw fault("read", path, ZK.noNode);
    if (watch) node.watchers.add(id);
    return { data: node.data, stat: statOf(node) };
  }

  delete(path: string): void {
    if (!this.#nodes.has(path)) throw fault("delete", path, ZK.noNode);
    if (this.childrenOf(path).length > 0) throw fault("delete", path, NOT_EMPTY);
    this.#remove(path);
  }

  childrenOf(path: string): string[] {
    const below = [...this.#nodes.keys()].filter((each) => each.startsWith(`${path}/`));
    return below.map((each) => each.slice(path.length + 1)).filter((name) => !name.includes("/"));
  }

  #newNode(data: string, mode: CreateMode, ephemeralOwner: string): Node {
    this.#zxid += 1;
    const createdAtMs = this.scheduler.nowMs();
    return {
      ...{ data, mode, ephemeralOwner, createdAtMs, czxid: this.#zxid },
      ...{ counter: 0, watchers: new Set<string>() },
    };
  }

  #remove(path: string): void {
    const node = this.#nodes.get(path);
    this.#nodes.delete(path);
    this.#zxid += 1;
    for (const id of node?.watchers ?? []) this.#sessions.get(id)?.onWatch(path);
  }

  #tick(): void {
    this.scheduler.after(TICK_MS, () => {
      const nowMs = this.scheduler.nowMs();
      for (const [id, { touchedAtMs, timeoutMs }] of [...this.#sessions]) {
        if (nowMs - touchedAtMs > timeoutMs) this.endSession(id);
      }
      this.#tick();
    });
  }
}

const NOT_EMPTY = -111;

function fault(operation: string, path: string, code: number) {
  return requestError(operation, path, code, "simulated");
}

function statOf({ czxid, ephemeralOwner, createdAtMs }: Node): Stat {
  return { czxid, ephemeralOwner, createdAtMs };
}
