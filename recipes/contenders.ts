/**
 * Who holds a job and who waits for it, for programs: the same as `fencekeeper status` shows for one job.
 */
import { Deadline, settleWithin, TIMED_OUT } from "../lib/deadline.js";
import {
  ConnectionLossError,
  NoNodeError,
  OptionError,
  SessionLostError,
  ZooKeeperUnreachableError,
} from "../lib/errors.js";
import { checkPath } from "../lib/zookeeper/connect-string.js";
import { claimPath } from "../lib/zookeeper/paths.js";
import type { Session, SessionSource } from "../lib/zookeeper/session-port.js";
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
  const deadline = Deadline.after(answerMs, zookeeper.clock);
  for (;;) {
    const session = await zookeeper.session(deadline, signal);
    try {
      const status = await settleWithin(readSynced(session, path), deadline, signal);
      if (status !== TIMED_OUT) return status;
    } catch (error) {
      // Reading again is harmless, and the next session waits for the connection.
      const passing = error instanceof ConnectionLossError || error instanceof SessionLostError;
      if (!passing) throw error;
    }
    if (deadline.passed) {
      throw new ZooKeeperUnreachableError(
        `ZooKeeper did not answer in time while we were reading ${path}: check that its servers run`,
      );
    }
  }
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
