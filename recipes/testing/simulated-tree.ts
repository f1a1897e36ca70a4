/**
 * The znodes of a simulated ensemble with their past: each knows the transactions that made and deleted it, so that a
 * server that lags behind can be read as it is.
 */
import { requestError, ZK } from "../../lib/zookeeper/request-error.js";
import type { CreateMode, Stat } from "../../lib/zookeeper/session-port.js";
import { SequenceCounter, sequenceText } from "./sequence-counter.js";

/** The versions are those of the leader, whatever a server that lags behind has seen. */
export interface Znode extends Stat {
  readonly name: string;
  readonly path: string;
  readonly data: string;
  readonly parent: Znode | undefined;
  /** All that have ever been there and may still be seen by somebody. */
  children: Znode[];
  readonly counter: SequenceCounter;
  /** Transaction that deleted it; Infinity while it is there. */
  deletedZxid: number;
}

export interface Making {
  path: string;
  data: string;
  mode: CreateMode;
  /** Session that makes it. */
  session: string;
  zxid: number;
  nowMs: number;
}

const NOT_EPHEMERAL = "0";

/** A change that does not compare the version. */
const ANY_VERSION = -1;

export class SimulatedTree {
  readonly #root = znode({ name: "", path: "", parent: undefined, czxid: 0 });

  /** The znode as a server sees it that has applied everything up to a transaction. */
  find(path: string, zxid: number): Znode | undefined {
    let at: Znode | undefined = this.#root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      at = at.children.find((child) => child.name === name && isThere(child, zxid));
      if (at === undefined) return undefined;
    }
    return at;
  }

  /** @throws NoNodeError */
  get(operation: string, path: string, zxid: number): Znode {
    const node = this.find(path, zxid);
    if (node === undefined) throw requestError(operation, path, ZK.noNode, "simulated");
    return node;
  }

  childrenOf(node: Znode, zxid: number): Znode[] {
    return node.children.filter((child) => isThere(child, zxid));
  }

  /** @throws NoNodeError */
  list(path: string, zxid: number): { children: string[]; stat: Stat } {
    const node = this.get("list", path, zxid);
    return { children: this.childrenOf(node, zxid).map(({ name }) => name), stat: statOf(node) };
  }

  /** @throws NoNodeError, NodeExistsError */
  create({ path, data, mode, session, zxid, nowMs }: Making): Znode {
    const parent = this.get("create", path.slice(0, path.lastIndexOf("/")), zxid);
    const sequential = mode === "ephemeralSequential";
    const full = sequential ? path + sequenceText(parent.counter.take(nowMs)) : path;
    const name = full.slice(full.lastIndexOf("/") + 1);
    if (parent.children.some((child) => child.name === name && isThere(child, zxid))) {
      throw requestError("create", path, ZK.nodeExists, "simulated");
    }
    if (!sequential) parent.counter.take(nowMs);
    const ephemeralOwner = sequential ? session : NOT_EPHEMERAL;
    const stat = { czxid: zxid, ephemeralOwner, createdAtMs: nowMs };
    const made = znode({ name, path: full, data, parent, ...stat });
    parent.children.push(made);
    parent.childVersion += 1;
    return made;
  }

  /** @throws NoNodeError, NotEmptyError */
  delete(path: string, zxid: number): Znode {
    const node = this.get("delete", path, zxid - 1);
    if (this.childrenOf(node, zxid).length > 0) {
      throw requestError("delete", path, ZK.notEmpty, "simulated");
    }
    markDeleted(node, zxid);
    return node;
  }

  /** @throws NoNodeError, BadVersionError */
  setAcl(path: string, version: number, zxid: number): void {
    const node = this.get("setAcl", path, zxid - 1);
    if (version !== ANY_VERSION && version !== node.aclVersion) {
      throw requestError("setAcl", path, ZK.badVersion, "simulated");
    }
    node.aclVersion += 1;
  }

  /** Deletes what a session owns. */
  deleteOwnedBy(session: string, zxid: number): Znode[] {
    const owned = [...this.#all(this.#root)].filter(
      (node) => node.ephemeralOwner === session && isThere(node, zxid),
    );
    for (const node of owned) markDeleted(node, zxid);
    return owned;
  }

  /** Forgets what no server that has applied so much can see any more. */
  forgetBefore(zxid: number): void {
    for (const node of this.#all(this.#root)) {
      if (node.children.length > 0) {
        node.children = node.children.filter((child) => child.deletedZxid > zxid);
      }
    }
  }

  *#all(node: Znode): Generator<Znode> {
    yield node;
    for (const child of node.children) yield* this.#all(child);
  }
}

export function statOf(node: Znode): Stat {
  const { czxid, ephemeralOwner, createdAtMs, aclVersion, childVersion } = node;
  return { czxid, ephemeralOwner, createdAtMs, aclVersion, childVersion };
}

function markDeleted(node: Znode, zxid: number): void {
  node.deletedZxid = zxid;
  if (node.parent !== undefined) node.parent.childVersion += 1;
}

function isThere(node: Znode, zxid: number): boolean {
  return node.czxid <= zxid && zxid < node.deletedZxid;
}

function znode(parts: Pick<Znode, "name" | "path" | "parent" | "czxid"> & Partial<Znode>): Znode {
  return {
    ...{ data: "", ephemeralOwner: NOT_EPHEMERAL, createdAtMs: 0, children: [] },
    ...{ aclVersion: 0, childVersion: 0 },
    ...{ counter: new SequenceCounter(), deletedZxid: Number.POSITIVE_INFINITY },
    ...parts,
  };
}
