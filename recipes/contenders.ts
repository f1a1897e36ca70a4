/**
 * Who holds a job and who waits for it, for programs: the same as `fencekeeper status` shows for one job.
 */
import { NoNodeError, OptionError } from "../lib/errors.js";
import { checkPath } from "../lib/zookeeper/connect-string.js";
import { claimPath } from "../lib/zookeeper/paths.js";
import type { Session, SessionSource } from "../lib/zookeeper/session-port.js";
import { askZooKeeper } from "./ask-zookeeper.js";
import { type QueueStatus, readQueueAt } from "./claim/queue-status.js";

export type { ContenderStatus, QueueStatus } from "./claim/queue-status.js";

export interface ContendersOptions {
  zookeeper: SessionSource;
  /** The job, or else an existing lock path. */
  job?: string;
  lockPath?: string;
  /** Root of the claim paths. Default `/fencekeeper`. */
  root?: string;
  /** How long to wait for ZooKeeper, in milliseconds. Default 5 000. */
  answerMs?: number;
  /** Gives up. */
  signal?: AbortSignal;
}

/**
 * The contenders of a job, in the order in which they get it: who, since when, on which host. It is what was true when
 * the servers were asked (after a `sync`), and may have changed since: nothing may be decided by it.
 *
 * @throws OptionError, JobIdError when an option cannot be used
 * @throws ZooKeeperUnreachableError when ZooKeeper does not answer in time
 * @throws ZooKeeperDeniedError and the other errors of a ZooKeeper request
 * @throws the signal's reason when it aborts first
 */
export async function contenders(options: ContendersOptions): Promise<QueueStatus> {
  const { zookeeper, signal, answerMs = 5_000 } = options;
  const path = pathOf(options);
  return askZooKeeper({ zookeeper, answerMs, signal, what: `reading ${path}` }, (session) =>
    readSynced(session, path),
  );
}

async function readSynced(session: Session, path: string): Promise<QueueStatus> {
  try {
    await session.sync(path);
  } catch (error) {
    if (!(error instanceof NoNodeError)) throw error;
  }
  return readQueueAt(session, path);
}

function pathOf({ job, lockPath, root }: ContendersOptions): string {
  if (lockPath !== undefined && job === undefined) return checkPath(lockPath, "the lock path");
  if (job !== undefined && lockPath === undefined) return claimPath(job, root);
  throw new OptionError("contenders needs a job or a lockPath, and not both");
}
