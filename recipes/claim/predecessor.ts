/**
 * Waiting behind the predecessor, the only contender we watch: a release wakes one waiter, not all of them.
 * A wake-up means "list again" and nothing more; no decision is made here.
 */
import { type Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { NoNodeError } from "../../lib/errors.js";
import type { Session } from "../../lib/zookeeper/session-port.js";

/** A waiter lists again after this long even if nothing woke it, should a watch ever be lost. */
const RECHECK_MS = 60_000;

export interface PredecessorWait {
  session: Session;
  /** Full path of the predecessor's znode. */
  path: string;
  deadline: Deadline;
  signal: AbortSignal | undefined;
  warn: (message: string) => void;
}

/**
 * Comes back when there is a reason to list again, or the deadline has passed.
 *
 * @throws ConnectionLossError, SessionLostError or SessionClosedError when the watch could not be set
 * @throws the signal's reason when it aborts
 */
export async function waitForPredecessor(wait: PredecessorWait): Promise<void> {
  const { session, path, signal } = wait;
  const deadline = wait.deadline.atMost(RECHECK_MS);
  let wake = () => {};
  const woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const stops = [session.onWatch(path, wake), session.onState(wake)];
  try {
    // A read, because unlike `exists` it leaves no watch behind when the znode is gone.
    const seen = await settleWithin(session.read(path, { watch: true }), deadline, signal);
    if (seen === TIMED_OUT) return;
    if (seen.stat.ephemeralOwner === "0") {
      wait.warn(
        `${path} is a persistent znode that looks like a contender: it blocks the queue until somebody deletes it`,
      );
    }
    await settleWithin(woken, deadline, signal);
  } catch (error) {
    if (!(error instanceof NoNodeError)) throw error; // gone before the watch was set: list again
  } finally {
    for (const stop of stops) stop();
  }
}
