/**
 * A simulated ZooKeeper ensemble: one order of transactions, sessions that the leader expires, and servers of which
 * some lag behind. What goes wrong on the way to it is the business of `simulated-handle.ts`.
 */
import type { CreateMode } from "../../lib/zookeeper/session-port.js";
import type { Connection } from "./connection.js";
import type { Scheduler } from "./scheduler.js";
import { type LogEntry, SimulatedServer } from "./simulated-server.js";
import { SimulatedTree, type Znode } from "./simulated-tree.js";

export interface EnsembleOptions {
  servers: number;
  /** Sessions are looked through this often for expired ones, and granted from twice this. */
  tickMs: number;
  /** The longest session timeout that is granted, in milliseconds. */
  maxSessionTimeoutMs: number;
}

/** What happens in the ensemble, for those who check it. */
export interface EnsembleHooks {
  /** A session is about to expire, and its znodes to be deleted. */
  expires(session: string): void;
  made(node: Znode, session: string): void;
  /** Watches on a path have fired for these sessions at one server. */
  woke(path: string, sessions: string[]): void;
}

export interface SessionRecord {
  readonly id: string;
  readonly timeoutMs: number;
  touchedAtMs: number;
  /** The one that the ensemble takes requests from. */
  connection: Connection | undefined;
  /** One session's requests wait in line at each server, also behind those of a connection that is broken. */
  readonly lines: Map<SimulatedServer, Line>;
}

/** In milliseconds: when the last write was at the leader, and when the last answer was ready. */
export interface Line {
  atLeaderMs: number;
  readyMs: number;
}

/** Transactions of one leader have the leader's number in their upper half. */
const EPOCH = 2 ** 32;

/** The log is looked through for what can be forgotten each time it has grown by so many. */
const FORGET_EVERY = 64;

export class SimulatedEnsemble {
  readonly tree = new SimulatedTree();
  readonly servers: readonly SimulatedServer[];
  readonly sessions = new Map<string, SessionRecord>();
  #leader = 0;
  #epoch = 1;
  #zxid = EPOCH;
  #sessionCount = 0;
  readonly #log: LogEntry[] = [];

  constructor(
    readonly scheduler: Scheduler,
    readonly options: EnsembleOptions,
    readonly hooks: EnsembleHooks,
  ) {
    this.servers = Array.from(
      { length: options.servers },
      (_, index) =>
        new SimulatedServer(index, this.#log, scheduler, {
          fired: (path, sessions) => this.#fired(index, path, sessions),
        }),
    );
    this.#tick();
  }

  /** The last transaction of all. */
  get zxid(): number {
    return this.#zxid;
  }

  get leader(): SimulatedServer {
    return this.servers[this.#leader] as SimulatedServer; // one of them always leads
  }

  openSession(askedMs: number): SessionRecord {
    const { tickMs, maxSessionTimeoutMs } = this.options;
    this.#sessionCount += 1;
    const record: SessionRecord = {
      id: (0x100000000 + this.#sessionCount).toString(16),
      timeoutMs: Math.min(Math.max(askedMs, 2 * tickMs), maxSessionTimeoutMs),
      touchedAtMs: this.scheduler.nowMs(),
      connection: undefined,
      lines: new Map(),
    };
    this.sessions.set(record.id, record);
    return record;
  }

  /** Ends a session as its client asks for it. */
  closeSession(id: string): void {
    const record = this.sessions.get(id);
    if (record === undefined) return;
    this.sessions.delete(id);
    for (const server of this.servers) server.forgetWatchesOf(id);
    const zxid = this.#zxid + 1;
    this.#commit(zxid, this.tree.deleteOwnedBy(id, zxid));
  }

  /** Ends a session as its time runs out. */
  expireSession(id: string): void {
    if (!this.sessions.has(id)) return;
    this.hooks.expires(id);
    this.closeSession(id);
  }

  create(session: string, path: string, data: string, mode: CreateMode): string {
    const nowMs = this.scheduler.nowMs();
    const zxid = this.#zxid + 1;
    const made = this.tree.create({ path, data, mode, session, zxid, nowMs });
    this.#commit(zxid, []);
    this.hooks.made(made, session);
    return made.path;
  }

  delete(path: string): void {
    const zxid = this.#zxid + 1;
    this.#commit(zxid, [this.tree.delete(path, zxid)]);
  }

  setAcl(path: string, version: number): void {
    const zxid = this.#zxid + 1;
    this.tree.setAcl(path, version, zxid);
    this.#commit(zxid, []);
  }

  /** Names of the children that are there now, as the leader sees it. */
  childrenOf(path: string): string[] {
    const node = this.tree.find(path, this.#zxid);
    return node === undefined ? [] : this.tree.childrenOf(node, this.#zxid).map(({ name }) => name);
  }

  /** Fault: a server goes down for a while. Where it leads, the ensemble has to agree on another leader meanwhile. */
  restart(server: SimulatedServer, forMs: number): void {
    if (server === this.leader) this.changeLeader(forMs);
    else this.#takeDown(server, forMs);
  }

  /** Its connections break, and what it was doing gets no answer. */
  #takeDown(server: SimulatedServer, forMs: number): void {
    server.isUp = false;
    server.life += 1;
    for (const { connection } of this.sessions.values()) {
      if (connection?.server === server) connection.breakFromServer();
    }
    this.scheduler.after(forMs, () => {
      server.isUp = true;
    });
  }

  /** Fault: the ensemble has no leader for a while, and then another one, which counts every session's time afresh. */
  changeLeader(forMs: number): void {
    this.#leader = (this.#leader + 1) % this.servers.length;
    this.leader.lagMs = 0;
    this.leader.catchUpTo(this.#zxid);
    this.#epoch += 1;
    this.#zxid = this.#epoch * EPOCH;
    for (const server of this.servers) this.#takeDown(server, forMs);
    const untilMs = this.scheduler.nowMs() + forMs;
    for (const record of this.sessions.values()) record.touchedAtMs = untilMs;
  }

  #commit(zxid: number, gone: Znode[]): void {
    this.#zxid = zxid;
    const entry = { zxid, atMs: this.scheduler.nowMs(), deleted: gone.map(({ path }) => path) };
    this.#log.push(entry);
    for (const server of this.servers) server.expect(entry);
    if (this.#log.length % FORGET_EVERY === 0) {
      this.tree.forgetBefore(Math.min(...this.servers.map((server) => server.zxid)));
    }
  }

  #fired(index: number, path: string, sessions: string[]): void {
    this.hooks.woke(path, sessions);
    for (const id of sessions) {
      const connection = this.sessions.get(id)?.connection;
      if (connection?.server.index === index) connection.sendEvent(path);
    }
  }

  #tick(): void {
    this.scheduler.after(this.options.tickMs, () => {
      const nowMs = this.scheduler.nowMs();
      for (const { id, touchedAtMs, timeoutMs } of [...this.sessions.values()]) {
        if (nowMs - touchedAtMs > timeoutMs) this.expireSession(id);
      }
      this.#tick();
    });
  }
}
