/**
 * One server of a simulated ensemble: how much it has applied, the watches that were set at it, and whether it runs. A
 * follower may lag behind; what it has applied is worked out when somebody asks.
 */
import type { Scheduler } from "./scheduler.js";

/** One transaction in the ensemble's log. */
export interface LogEntry {
  zxid: number;
  atMs: number;
  /** Paths of znodes that it deleted. */
  deleted: string[];
}

export interface ServerHooks {
  /** A watch has fired, for these sessions. */
  fired(path: string, sessions: string[]): void;
}

export class SimulatedServer {
  isUp = true;
  /** Counts its starts: what was sent to an earlier life of it gets no answer. */
  life = 1;
  /** How far a follower is behind, in milliseconds. */
  lagMs = 0;
  #applied = 0;
  #nextEntry = 0;
  readonly #watches = new Map<string, Set<string>>();

  constructor(
    readonly index: number,
    readonly log: readonly LogEntry[],
    readonly scheduler: Scheduler,
    readonly hooks: ServerHooks,
  ) {}

  /** The last transaction that it has applied by now. */
  get zxid(): number {
    const untilMs = this.scheduler.nowMs() - this.lagMs;
    for (let entry = this.#entry; entry !== undefined && entry.atMs <= untilMs; ) {
      this.#apply(entry);
      entry = this.#entry;
    }
    return this.#applied;
  }

  /** Watches that are set. */
  get watches(): { path: string; session: string }[] {
    return [...this.#watches].flatMap(([path, sessions]) =>
      [...sessions].map((session) => ({ path, session })),
    );
  }

  /** Applies everything up to a transaction, as it does before it answers a write. */
  catchUpTo(zxid: number): void {
    for (let entry = this.#entry; entry !== undefined && entry.zxid <= zxid; ) {
      this.#apply(entry);
      entry = this.#entry;
    }
  }

  /** A transaction that deletes is applied in its time also when nobody asks, because watches wait for it. */
  expect(entry: LogEntry): void {
    if (entry.deleted.length === 0) return;
    if (this.lagMs === 0) this.catchUpTo(entry.zxid);
    else this.scheduler.after(this.lagMs, () => this.catchUpTo(entry.zxid));
  }

  watch(path: string, session: string): void {
    const sessions = this.#watches.get(path) ?? new Set();
    this.#watches.set(path, sessions.add(session));
  }

  /** The watches of a session go with its connection. */
  forgetWatchesOf(session: string): void {
    for (const [path, sessions] of this.#watches) {
      if (sessions.delete(session) && sessions.size === 0) this.#watches.delete(path);
    }
  }

  get #entry(): LogEntry | undefined {
    return this.log[this.#nextEntry];
  }

  #apply(entry: LogEntry): void {
    this.#nextEntry += 1;
    this.#applied = entry.zxid;
    for (const path of entry.deleted) {
      const sessions = this.#watches.get(path);
      if (sessions === undefined) continue;
      this.#watches.delete(path);
      this.hooks.fired(path, [...sessions]);
    }
  }
}
