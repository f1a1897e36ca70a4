/**
 * What one attempt to claim has, and its waits: each is bounded by the attempt's deadlines and the caller's signal.
 */
import { type Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { ZooKeeperUnreachableError } from "../../lib/errors.js";
import type { Acl } from "../../lib/zookeeper/access.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { untilState } from "../../lib/zookeeper/until-state.js";
import type { ClaimOptions, QueuePosition } from "./claim-options.js";
import type { Telling } from "./telling.js";

export interface Attempt {
  session: Session;
  /** The claim path. */
  path: string;
  /** What the znodes that we make are given. Nothing on a lock path of the user's: other clients may be there. */
  protection: Acl | undefined;
  options: ClaimOptions;
  /** End of the wait in the queue. */
  queue: Deadline;
  /** End of the wait for ZooKeeper. */
  answer: Deadline;
  /** Whether the claim path may be deleted and made afresh when its counter nears its end. */
  renewable: boolean;
  warn: (message: string) => void;
  tellPosition: (position: QueuePosition) => void;
  telling: Telling;
}

/**
 * @throws ZooKeeperUnreachableError when the request was not answered in time
 * @throws the signal's reason when it aborts first, and whatever the request rejects with
 */
export async function withinAnswer<T>(context: Attempt, request: Promise<T>): Promise<T> {
  const result = await settleWithin(request, context.answer, context.options.signal);
  if (result === TIMED_OUT) throw unreachable(context);
  return result;
}

/**
 * Waits while the connection is broken; afterwards a request is answered, if only by the session's end.
 *
 * @throws as {@link withinAnswer}
 */
export async function untilUsable(context: Attempt): Promise<void> {
  const { session, options, answer } = context;
  const state = await untilState(session, (s) => s !== "SUSPENDED", answer, options.signal);
  if (state === TIMED_OUT) throw unreachable(context);
}

export function unreachable({ path }: Attempt): ZooKeeperUnreachableError {
  return new ZooKeeperUnreachableError(
    `ZooKeeper did not answer in time while we were claiming ${path}: check that its servers run`,
  );
}
