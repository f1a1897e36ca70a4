/**
 * What a sink is: the store that compares and sets in one atomic step, and what it answers.
 * Expected answers are values to switch on; errors are for faults. The Redis sink is `redis/redis-sink.ts`.
 */
import type { FencingToken } from "./token.js";

/** Whose write it is. */
export interface WriteIdentity {
  /** The result's key, chosen by the user. */
  key: string;
  /** The job the key belongs to. */
  job: string;
  token: FencingToken;
  /** Who writes, for people who look; cut to 64 bytes. */
  holder?: string;
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

export type AdvanceAnswer =
  /** The fence now stands at this token (`advanced`), or stood there already (`current`). */
  | { outcome: "advanced" | "current"; present: PresentResult | undefined }
  /** The fence is above this token; nothing was changed. */
  | { outcome: "stale"; fenceText: string }
  /** The key belongs to another job; nothing was changed. */
  | { outcome: "foreign"; owner: string };

export type CommitAnswer =
  | { outcome: "committed"; revision: number }
  /** The same value was committed under this token before: a retry. */
  | { outcome: "duplicate"; revision: number }
  /** Another value was committed under this token before; nothing was changed. */
  | { outcome: "conflict" }
  | { outcome: "stale"; fenceText: string }
  | { outcome: "foreign"; owner: string };

export interface CommitRequest extends WriteIdentity {
  value: Uint8Array | string;
  /** Whole milliseconds until the result expires, 1 or more; none keeps it. The fence never expires. */
  ttlMs?: number;
  /** `once` (default): one result per claim. `update`: the holder may write again under its own token. */
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
  /** `open`: the token's claim has started and not committed yet. */
  state: "open" | "committed";
  /** The last committed result, undefined when there was none. */
  committed:
    | (PresentResult & { digest: string; committedAtMs: number; holder: string })
    | undefined;
  /** Rejected writes so far. */
  staleCount: number;
  lastStale: { tokenText: string; atMs: number } | undefined;
}

export interface Sink {
  /** Raises the fence to the token before the work starts, and tells what result is there. */
  advanceFence(identity: WriteIdentity, options?: CallOptions): Promise<AdvanceAnswer>;
  /** Compares the token and writes value and fence, in one atomic step. */
  commitResult(request: CommitRequest, options?: CallOptions): Promise<CommitAnswer>;
  /** Value and fence in one atomic step. */
  readResult(key: string, options?: CallOptions): Promise<ReadAnswer>;
  /** Ends the connection; safe to call again. */
  close(): Promise<void>;
}
