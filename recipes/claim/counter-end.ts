/**
 * What is done near the end of a claim path's counter, where numbers would repeat: new arrivals hold back, so that the
 * path empties, and the last one out deletes it. It is made afresh with a higher generation, and tokens go on rising.
 *
 * Several can hold back at once, and they may disagree for a moment about which path is there. That is harmless: a path
 * with a contender in it cannot be deleted; an empty one that was just made afresh, and is deleted by somebody who saw
 * the old one empty, is made again by the contender that finds it missing; and each path has a higher generation than
 * all before it. Who holds back looks with listings, which cost no number.
 */
import {
  ConnectionLossError,
  NoNodeError,
  NotEmptyError,
  SequenceExhaustedError,
  ZooKeeperDeniedError,
} from "../../lib/errors.js";
import { SEQUENCE_MAX } from "../../lib/token.js";
import { type Queue, readQueue } from "../../lib/zookeeper/queue-order.js";
import { type Attempt, unreachable, untilUsable, withinAnswer } from "./attempt-context.js";
import type { ClaimAnswer } from "./claim-options.js";
import { waitForPredecessor } from "./predecessor.js";

/** Arrivals from this number on hold back: 2^20 before the end, which leaves room for all that arrive meanwhile. */
export const HOLD_BACK_FROM = SEQUENCE_MAX + 1 - 2 ** 20;

/** True for a number whose owner holds back; negative ones come from beyond the end. */
export function isNearEnd(sequence: number): boolean {
  return sequence < 0 || sequence >= HOLD_BACK_FROM;
}

/**
 * `again`: the path is gone, or another one is there. `fixed`: it cannot be made afresh. `busy`: the wait is over.
 */
export type HeldBack = "again" | "fixed" | (ClaimAnswer & { outcome: "busy" });

/**
 * Waits outside the queue, after our contender has left it, until the claim path has been made afresh.
 *
 * @param czxid of the path whose counter is near its end
 * @throws SessionLostError, SessionClosedError, ZooKeeperUnreachableError, the signal's reason
 */
export async function holdBack(context: Attempt, czxid: number): Promise<HeldBack> {
  for (;;) {
    await untilUsable(context);
    try {
      const turn = await lookOnce(context, czxid);
      if (turn !== "look again") return turn;
    } catch (error) {
      if (error instanceof NoNodeError) return "again";
      if (error instanceof ZooKeeperDeniedError) return "fixed";
      // Somebody came between the listing and the delete, or the next look waits for the connection.
      if (!(error instanceof NotEmptyError || error instanceof ConnectionLossError)) throw error;
    }
  }
}

async function lookOnce(context: Attempt, czxid: number): Promise<HeldBack | "look again"> {
  const { session, path, options, queue, warn } = context;
  const { children, stat } = await withinAnswer(context, session.list(path));
  if (stat.czxid !== czxid) return "again";
  const read = readQueue(children);
  if (read.foreign.length > 0) return "fixed";
  const last = lastOf(read);
  if (last === undefined) {
    await withinAnswer(context, session.delete(path));
    return "again";
  }
  if (queue.passed) {
    if (session.state !== "CONNECTED") throw unreachable(context);
    const { contenders } = read;
    return { outcome: "busy", holder: contenders[0]?.name ?? "", ahead: contenders.length };
  }
  const { signal } = options;
  await waitForPredecessor({ session, path: `${path}/${last}`, deadline: queue, signal, warn });
  return "look again";
}

/** The last one that stays in the queue; where none stays, the last that is about to leave it. */
function lastOf({ contenders }: Queue): string | undefined {
  const staying = contenders.filter(({ sequence }) => !isNearEnd(sequence));
  return (staying.at(-1) ?? contenders.at(-1))?.name;
}

export function nearEnd(path: string, sequence: number): string {
  return (
    `the counter of ${path} is near its end (${sequence} of ${SEQUENCE_MAX}), ` +
    "and the path cannot be made afresh by us: let its contenders finish, and delete it with all its children"
  );
}

export function exhausted(path: string, sequence: number): SequenceExhaustedError {
  return new SequenceExhaustedError(
    `the counter of ${path} is at its end (${sequence}): let its contenders finish and delete the path; ` +
      "it is made anew, and its tokens go on rising",
  );
}
