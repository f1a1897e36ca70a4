/**
 * What `compact` is told, and what it reports.
 */
import type { DropAnswer, FenceStore } from "../../lib/redis/fence-store.js";
import type { SessionSource } from "../../lib/zookeeper/session-port.js";

export interface CompactOptions {
  /** The ensemble in which the jobs of these fences are claimed. */
  zookeeper: SessionSource;
  /** The fences, from `openRedisFences`. */
  fences: FenceStore;
  /** Root of the claim paths. Default `/fencekeeper`. */
  root?: string | undefined;
  /** That of the workers. Default 0. */
  era?: number;
  /** Only counts what would be removed. Default: false. */
  dryRun?: boolean;
  /**
   * Also removes fences whose result is still there. Old tokens are kept out all the same, but it is not known any more
   * who committed the result, nor whether it still is what was committed. Default: false.
   */
  withResults?: boolean;
  /** Called after each step with what has been done so far. */
  onProgress?: (report: CompactReport) => void;
  /** Fences of one round. Default 50 000. */
  roundFences?: number;
  /** How long to wait for each answer of ZooKeeper, in milliseconds. Default 30 000. */
  answerMs?: number;
  /** Ends the run; what has been done stays done. */
  signal?: AbortSignal;
  uuid?: () => string;
}

/** How many fences were met, and what became of them. */
export interface CompactReport {
  met: number;
  /** Removed, or in a dry run: would be. */
  dropped: number;
  /** Left alone, and why. */
  kept: Record<KeptWhy, number>;
  /** The last floor; undefined in a dry run, and when there was nothing to do. */
  floorText: string | undefined;
}

/**
 * `live`: the job is claimed. `result`: a result is there. `changed`: a claim raised it meanwhile. `floor`: its token
 * is above ZooKeeper's last transaction, as after a restore, or another `compact` is at work. `unreadable`: it is none.
 */
export type KeptWhy = "live" | Exclude<DropAnswer, "dropped"> | "unreadable";
