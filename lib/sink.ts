/**
 * What a sink is: the store that compares and sets in one atomic step, and what it answers.
 * Expected answers are values to switch on; errors are for faults. The Redis sink is `redis/redis-sink.ts`.
 */
import type { FencingToken } from "./token.js";

/** Whose write it is: a claim, as the sink sees it. */
export interface ClaimIdentity {
  /** The job that the key belongs to. */
  job: string;
  token: FencingToken;
  /** Who writes, for people who look; cut to 64 bytes. */
  holder?: string;
  /**
   * Asks ZooKeeper whether the claim is held now, and throws when it is not. It is called when the key has no fence and
   * `compact` has removed fences that were as old: only a claim that is alive may begin a new one there. Without it
   * such a write is `stale`.
   */
  confirm?: (signal: AbortSignal | undefined) => Promise<void>;
}

/** A claim's write at a key. */
export interface WriteIdentity extends ClaimIdentity {
  /** The result's key, chosen by the user. */
  key: string;
}

/** How long a call may take, all retries included, and what cancels it. */
export interface CallOptions {
  /** Default: the sink's own `timeoutMs`. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** A result that is at the key, as the fence describes it. */
export interface PresentResult {
  /** Canonical text of the token that committed it. */
  tokenText: string;
  /** How often it was written under that token; 1 unless updated. */
  revision: number;
  /** Milliseconds since the commit, by the server's clock. */
  ageMs: number;
}

/** The fence is above this token. `fenceText` is where it stands. */
export interface Stale {
  outcome: "stale";
  fenceText: string;
}

/** The key belongs to another job; nothing was changed. */
export interface Foreign {
  outcome: "foreign";
  owner: string;
}

/** Another value was committed under this token before; nothing was changed. */
export interface Conflict {
  outcome: "conflict";
}

/** A later write under the same token is there already: this one was late on its way. Nothing was changed. */
export interface Superseded {
  outcome: "superseded";
}

/** Why a write is not accepted. */
export type Refusal = Stale | Foreign | Conflict | Superseded;

/** Only in observe mode: it would have been refused, and went on all the same. */
export interface Observed {
  outcome: "observed";
  refusal: Refusal;
}

/** How safe a write is, where the sink was told to wait for it. */
export interface Durability {
  /** Replicas that have it. */
  replicas: number;
  /** Whether it is in the append-only file of the server that took it; undefined when that was not asked for. */
  aof: boolean | undefined;
  /** Whether all that was asked for was reached in time. The write is accepted either way. */
  reached: boolean;
}

/** Part of the answer to a write that waits for durability. */
export interface Kept {
  durability?: Durability;
}

export type AdvanceAnswer =
  /** The fence now stands at this token (`advanced`), or stood there already (`current`). */
  | ({ outcome: "advanced" | "current"; present: PresentResult | undefined } & Kept)
  | Observed
  | Stale
  | Foreign;

export type CommitAnswer =
  /** `duplicate`: the same value was committed under this token before, as by a retry. */
  ({ outcome: "committed" | "duplicate"; revision: number } & Kept) | Observed | Refusal;

export type InvalidateAnswer =
  /** There is no value now, and nothing older can bring it back. */
  ({ outcome: "invalidated"; found: boolean } & Kept) | Observed | Stale | Foreign | Superseded;

export type CommitAllAnswer =
  /** One revision for each result, in their order; 0 for a deletion. */
  | ({ outcome: "committed" | "duplicate"; revisions: number[] } & Kept)
  /** `key` is the first one that stood in the way. Nothing was changed at any key, unless it was `observed`. */
  | ((Observed | Refusal) & { key: string });

/** How a result is written. */
export interface WriteOptions {
  /** Whole milliseconds until the result expires, 1 or more; none keeps it. */
  ttlMs?: number;
}

export interface CommitRequest extends WriteIdentity, WriteOptions {
  value: Uint8Array | string;
  /** `once` (default): one result per claim. `update`: the holder may write again under its own token. */
  mode?: "once" | "update";
}

/** One of several results: a value, or none to delete it. */
export interface ResultChange extends WriteOptions {
  key: string;
  value: Uint8Array | string | undefined;
}

export interface CommitAllRequest extends ClaimIdentity {
  /** At least one, each key once; in a cluster all in one slot. */
  results: ResultChange[];
  /**
   * More keys whose fences must not stand in the way either, and where nothing is changed: for a note only to be
   * written while no newer claim has raised the fence of the result that it is about.
   */
  guards?: string[];
  /** As in {@link CommitRequest}. */
  mode?: "once" | "update";
}

export interface ReadAnswer {
  key: string;
  /** undefined when there is no value. */
  value: Buffer | undefined;
  /** undefined when no fence is stored, which is not the same as token 0. */
  fence: FenceRecord | undefined;
  /** Whether the value is the one that the fence says was committed; undefined when nothing was committed. */
  matches: boolean | undefined;
}

/** The fence as it is stored beside a result. */
export interface FenceRecord {
  /** Canonical text of the highest token that was accepted. */
  tokenText: string;
  job: string;
  /** `open`: the token's claim has started, or deleted the result, and has not committed since. */
  state: "open" | "committed";
  /** The last committed result, undefined when there was none. */
  committed:
    | (PresentResult & { digest: string; committedAtMs: number; holder: string })
    | undefined;
  /** Rejected writes so far. */
  staleCount: number;
  /** Writes that were let through in observe mode, and would have been rejected. */
  observedCount: number;
  /** The last write that was rejected or let through. */
  lastStale: { tokenText: string; atMs: number } | undefined;
}

export interface WaitOptions {
  /** How long to wait. Default: until it is there or the signal aborts. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Canonical text of a token: only a result of a newer one ends the wait. Default: any committed result. */
  newerThan?: string;
}

/** A value that is there and is the one that was committed. */
export interface CommittedResult extends ReadAnswer {
  value: Buffer;
  fence: FenceRecord & { committed: NonNullable<FenceRecord["committed"]> };
  matches: true;
}

export type WaitAnswer =
  | ({ outcome: "found" } & CommittedResult)
  /** It was not there in time; this is what was. */
  | ({ outcome: "timeout" } & ReadAnswer);

export interface Sink {
  /** Raises the fence to the token before the work starts, and tells what result is there. */
  advanceFence(identity: WriteIdentity, options?: CallOptions): Promise<AdvanceAnswer>;
  /**
   * The fence of a claim that was raised is watched over until the returned function is called: when the server turns
   * out to have lost it, it is raised again before anything else is written.
   */
  keepRaised(identity: WriteIdentity): () => void;
  /** Compares the token and writes value and fence, in one atomic step. */
  commitResult(request: CommitRequest, options?: CallOptions): Promise<CommitAnswer>;
  /** Several results of one claim in one atomic step: all of them or none. */
  commitResults(request: CommitAllRequest, options?: CallOptions): Promise<CommitAllAnswer>;
  /** Deletes the result and raises the fence, so that work begun earlier cannot bring it back. */
  invalidateResult(identity: WriteIdentity, options?: CallOptions): Promise<InvalidateAnswer>;
  /** Value and fence in one atomic step. */
  readResult(key: string, options?: CallOptions): Promise<ReadAnswer>;
  /**
   * Waits until a committed result is there, without polling: Redis tells when the fence changes. It waits through
   * outages and reconnects; `timeout` is for a server that could be asked, and a `SinkUnreachableError` for one that
   * could not when the time was over.
   */
  waitFor(key: string, options?: WaitOptions): Promise<WaitAnswer>;
  /** Ends the connection, and with it all waits; safe to call again. */
  close(): Promise<void>;
}
