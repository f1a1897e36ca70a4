/**
 * The invariants of claims, checked while a simulation runs. It reads names and orders in its own way: a fault in the
 * production code must not hide itself here.
 */
import { SEQUENCE_MAX } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Claim } from "../claim.js";
import { ContenderCounts } from "./contender-counts.js";
import { JOB } from "./job.js";
import type { Scheduler } from "./scheduler.js";
import type { EnsembleHooks, SimulatedEnsemble } from "./simulated-ensemble.js";
import type { SimulatedStore } from "./simulated-store.js";
import type { Znode } from "./simulated-tree.js";
import type { Worker, WorkerChecks } from "./worker.js";
import { WriteChecks } from "./write-checks.js";

/** What is looked at. */
export interface Monitored {
  readonly scheduler: Scheduler;
  readonly ensemble: SimulatedEnsemble;
  readonly store: SimulatedStore;
  /** All workers that there have ever been, and those whose process lives. */
  readonly workers: readonly Worker[];
  readonly living: readonly Worker[];
  /** Sessions that ended before their time by a fault. */
  readonly cutShort: ReadonlySet<string>;
  /** How many contenders processes of a name had a reason to make, beyond one for each claim. */
  reasonsToCreateOf(name: string): number;
  violated(what: string): void;
}

interface Held {
  worker: Worker;
  claim: Claim;
  abortedAtMs: number;
}

/**
 * Share of the session timeout that lies between a claim's signal and the server's handing on at the least: the stop
 * grace and the margin for clocks, less what a turn of the event loop may take.
 */
const TOLD_BEFORE_SHARE = 0.2;

/** From here on numbers are held back, and paths made afresh: what is counted there is another matter. */
const NEAR_THE_END = 2 ** 31 - 1 - 2 ** 20;

const CONTENDER = /-lock-(-?[0-9]+)$/;

export class Monitor implements EnsembleHooks, WorkerChecks {
  /** Claims whose work is going on. */
  readonly #held = new Set<Held>();
  readonly #tokens = new Set<string>();
  readonly #writes: WriteChecks;
  #highestToken = "";
  /** Contenders that a stranger deleted: the server hands on at once, and nobody can be told before. */
  readonly #takenAway = new Set<string>();
  readonly #made = new Map<string, { owner: string; czxid: number }>();
  readonly #woken = new Map<string, Set<string>>();
  readonly #counts = new ContenderCounts();
  #nearTheEnd = false;

  constructor(readonly world: Monitored) {
    this.#writes = new WriteChecks(world);
  }

  claims(worker: string): void {
    this.#counts.claims(worker);
  }

  begins(claim: Claim): void {
    this.#writes.begins(claim.token.text);
  }

  granted(worker: Worker, claim: Claim): () => void {
    const { text, sequence } = claim.token;
    worker.note(`granted ${sequence}`);
    if (sequence < 0 || sequence >= 2 ** 31 - 1) this.#violated(`${sequence} was granted`);
    if (this.#tokens.has(text)) this.#violated(`token ${text} was granted twice`);
    this.#tokens.add(text);
    this.#checkOwner(worker, claim);
    if (this.#isThere(claim.path)) this.#checkOrder(worker, claim);
    const held: Held = { worker, claim, abortedAtMs: Number.POSITIVE_INFINITY };
    const { signal } = claim;
    const aborted = () => {
      held.abortedAtMs = Math.min(held.abortedAtMs, this.world.scheduler.nowMs());
    };
    if (signal.aborted) aborted();
    signal.addEventListener("abort", aborted, { once: true });
    this.#held.add(held);
    return () => {
      this.#held.delete(held);
      signal.removeEventListener("abort", aborted);
    };
  }

  acknowledged(token: string): void {
    this.#writes.acknowledged(token);
  }

  /** Only a newer claim's fence may refuse a write; at a floor it is asked whether the claim is held. */
  refused(token: string, fence: string): void {
    const isNoClaims = fence.endsWith(`${SEQUENCE_MAX}`) || fence <= token;
    if (isNoClaims) this.#violated(`${token} was refused at ${fence}, no claim's`);
  }

  /** A stranger deletes a contender. */
  takeAway(path: string): void {
    this.#takenAway.add(path);
    this.world.ensemble.delete(path);
  }

  expires(session: string): void {
    const { scheduler } = this.world;
    for (const { worker, claim, abortedAtMs } of this.#held) {
      const timeoutMs = claim.negotiatedTimeoutMs;
      const nowMs = scheduler.nowMs();
      const isOurs = this.#made.get(claim.path)?.owner === session;
      // Whoever was held up could not be told in time, and neither can be who loses a session that was not silent.
      const couldBeTold =
        worker.process.main.runsSinceMs < nowMs - timeoutMs &&
        worker.process.sessions.runsSinceMs < nowMs - timeoutMs &&
        !this.world.cutShort.has(session);
      if (isOurs && couldBeTold && !(abortedAtMs <= nowMs - TOLD_BEFORE_SHARE * timeoutMs)) {
        this.#violated(
          `the session of ${worker.name} expired while its claim had not been told long before`,
        );
      }
    }
  }

  made({ path, czxid }: Znode, session: string): void {
    const sequence = Number(CONTENDER.exec(path)?.[1] ?? Number.NaN);
    if (Number.isNaN(sequence)) return;
    if (sequence < 0 || sequence >= NEAR_THE_END) this.#nearTheEnd = true;
    this.#made.set(path, { owner: session, czxid });
    const owner = this.world.workers.find(({ zookeeper }) =>
      zookeeper.handles.some(({ sessionId }) => sessionId === session),
    );
    if (owner !== undefined) this.#counts.made(owner.name);
  }

  woke(path: string, sessions: string[]): void {
    const made = this.#made.get(path);
    if (made === undefined || this.#nearTheEnd) return;
    const woken = this.#woken.get(path) ?? new Set();
    this.#woken.set(path, woken);
    for (const { zookeeper } of this.world.living) {
      for (const { id, listeners } of zookeeper.sessions) {
        const listens = sessions.includes(id) && listeners.paths.includes(path);
        if (listens && id !== made.owner && this.#waits(id, made.czxid)) woken.add(id);
      }
    }
    if (woken.size > 1) this.#violated(`the end of ${path} woke ${woken.size} waiters`);
  }

  /** When all work has ended: what was written, and how much was made for it. */
  checkEnd(): void {
    this.#writes.checkEnd();
    if (this.#nearTheEnd) return;
    const allowed = (name: string) => this.world.reasonsToCreateOf(name) + this.#takenAway.size;
    for (const what of this.#counts.tooMany(allowed)) this.#violated(what);
  }

  /** Nobody may hold a claim with another session's contender. */
  #checkOwner(worker: Worker, { path }: Claim): void {
    const owner = this.#made.get(path)?.owner;
    const isOwn = worker.zookeeper.handles.some(({ sessionId }) => sessionId === owner);
    if (!isOwn && !worker.zookeeper.sessions.some(({ id }) => id === owner)) {
      this.#violated(`${worker.name} was granted the claim with the contender of another session`);
    }
  }

  /** The contender is there: then it must be the first of all, and nobody else may believe to be. */
  #checkOrder(worker: Worker, claim: Claim): void {
    const { text } = claim.token;
    const first = this.#firstContender(claim.path.slice(0, claim.path.lastIndexOf("/")));
    if (first !== undefined && first !== claim.path) {
      this.#violated(`${worker.name} was granted the claim although ${first} was before it`);
    }
    if (text <= this.#highestToken) {
      this.#violated(`token ${text} was granted after ${this.#highestToken}`);
    }
    this.#highestToken = text;
    for (const other of this.#held) {
      const excused =
        other.claim.signal.aborted ||
        other.worker.process.main.isBehind ||
        this.world.cutShort.has(this.#made.get(other.claim.path)?.owner ?? "") ||
        this.#takenAway.has(other.claim.path);
      if (!excused) {
        this.#violated(
          `${worker.name} was granted the claim while ${other.worker.name} had not been told`,
        );
      }
    }
  }

  /** By the transactions that made them. */
  #firstContender(claimPath: string): string | undefined {
    const { tree, zxid } = this.world.ensemble;
    const node = tree.find(claimPath, zxid);
    if (node === undefined) return undefined;
    const contenders = tree.childrenOf(node, zxid).filter(({ path }) => CONTENDER.test(path));
    contenders.sort((a, b) => a.czxid - b.czxid);
    return contenders[0]?.path;
  }

  /**
   * Whether a session has a contender that came after a transaction; one whose contender a stranger deleted learns of
   * it when it is woken.
   */
  #waits(session: string, afterZxid: number): boolean {
    const { tree, zxid } = this.world.ensemble;
    const path = tree.find(claimPath(JOB), zxid);
    const waiting = (child: Znode) => child.czxid > afterZxid && isOwned(child, session, zxid);
    return path?.children.some(waiting) ?? false;
  }

  #isThere(path: string): boolean {
    const { tree, zxid } = this.world.ensemble;
    return tree.find(path, zxid) !== undefined;
  }

  readonly #violated = (what: string) => this.world.violated(what);
}

function isOwned({ ephemeralOwner, deletedZxid }: Znode, session: string, zxid: number): boolean {
  return ephemeralOwner === session && deletedZxid > zxid;
}
