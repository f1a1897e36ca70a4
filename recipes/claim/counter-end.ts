/**
 * What is done near the end of a claim path's counter, where numbers would repeat: new arrivals hold back, so that the
 * path empties, and the last one out deletes it. It is made afresh with a higher generation, and tokens go on rising.
 *
 * Several can hold back at once, and they may disagree for a moment about which path is there. That is harmless: a path
 * with a contender in it cannot be deleted; an empty one that was just made afresh, and is deleted by somebody who saw
 * the old one empty, is made again by the contender that finds it missing; and each path has a higher generation than
 * all before it. Who holds back looks with listings, which cost no number.
 */
import { Deadline } from "../../lib/deadline.js";
import {
  ConnectionLossError,
  NoNodeError,
  NotEmptyError,
  SequenceExhaustedError,
  ZooKeeperDeniedError,
} from "../../lib/errors.js";
import { SEQUENCE_MAX } from "../../lib/token.js";
import { readQueue } from "../../lib/zookeeper/queue-order.js";
import { type Attempt, unreachable, untilUsable, withinAnswer } from "./attempt-context.js";
import type { ClaimAnswer } from "./claim-options.js";
import { waitForPredecessor } from "./predecessor.js";

/** Arrivals from this number on hold back: 2^20 before the end, which leaves room for all that arrive meanwhile. */
export const HOLD_BACK_FROM = SEQUENCE_MAX + 1 - 2 ** 20;

/** Who does not wait still gives others that hold back so long to leave, in milliseconds: else none of them gets in. */
const LEAVING_MS = 2_000;

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
  const leaving = Deadline.after(LEAVING_MS, context.session.clock);
  for (;;) {
    await untilUsable(context);
    try {
      const turn = await lookOnce(context, { czxid, leaving });
      if (turn !== "look again") return turn;
    } catch (error) {
      if (error instanceof NoNodeError) return "again";
      if (error instanceof ZooKeeperDeniedError) return "fixed";
      // Somebody came between the listing and the delete, or the next look waits for the connection.
      if (!(error instanceof NotEmptyError || error instanceof ConnectionLossError)) throw error;
    }
  }
}

async function lookOnce(
  context: Attempt,
  { czxid, leaving }: { czxid: number; leaving: Deadline },
): Promise<HeldBack | "look again"> {
  const { session, path, options, warn } = context;
  const { children, stat } = await withinAnswer(context, session.list(path));
  if (stat.czxid !== czxid) return "again";
  const read = readQueue(children);
  if (read.foreign.length > 0) return "fixed";
  const { contenders } = read;
  const staying = contenders.filter(({ sequence }) => !isNearEnd(sequence)).at(-1);
  // The last one that stays in the queue; where none stays, the last that is about to leave it.
  const last = staying ?? contenders.at(-1);
  if (last === undefined) {
    await withinAnswer(context, session.delete(path));
    return "again";
  }
  const deadline = staying === undefined && context.queue.passed ? leaving : context.queue;
  if (deadline.passed) {
    if (session.state !== "CONNECTED") throw unreachable(context);
    return { outcome: "busy", holder: contenders[0]?.name ?? "", ahead: contenders.length };
  }
  const { signal } = options;
  await waitForPredecessor({ session, path: `${path}/${last.name}`, deadline, signal, warn });
  return "look again";
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
