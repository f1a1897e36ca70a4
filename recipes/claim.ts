/**
 * The claim recipe: stand in the queue of a job's contenders until we are first, and hold the claim.
 * After ZooKeeper's lock recipe without herd effect (recipes page of its documentation), with the create and the first
 * listing in one round trip.
 */
import { Deadline, untilPassed } from "../lib/deadline.js";
import { SessionLostError, ZooKeeperUnreachableError } from "../lib/errors.js";
import { checkPath } from "../lib/zookeeper/connect-string.js";
import { claimPath } from "../lib/zookeeper/paths.js";
import type { Session } from "../lib/zookeeper/session-port.js";
import { attempt } from "./claim/attempt.js";
import type { Attempt } from "./claim/attempt-context.js";
import {
  type ClaimAnswer,
  type ClaimOptions,
  checkClaimOptions,
  type QueuePosition,
} from "./claim/claim-options.js";
import { holdBack } from "./claim/counter-end.js";
import { checkStopGrace } from "./claim/stop-grace.js";
import { Telling } from "./claim/telling.js";

export type { ClaimAnswer, ClaimOptions, QueuePosition } from "./claim/claim-options.js";
export type { Claim, ReleaseAnswer } from "./claim/claim-port.js";

/** How long to wait between two tries to get a session back, in milliseconds. */
const SESSION_PAUSE_MS = 250;

/** A claim path that stands near its end after so many renewals is not one that we can renew. */
const RENEWALS_MAX = 100;

/**
 * Claims a job.
 *
 * @throws OptionError, JobIdError when an option cannot be used
 * @throws ZooKeeperUnreachableError when ZooKeeper does not answer in time: at the beginning within the connect
 *   timeout, later within `waitMs` and `answerMs` together
 * @throws ZooKeeperDeniedError when an access control list forbids what is needed
 * @throws ConfigurationError when the chroot is missing, or the session timeout too short for the stop grace
 * @throws SequenceExhaustedError when the claim path's counter is at its end and the path cannot be made afresh
 * @throws the signal's reason when it aborts before the grant
 */
export async function claim(options: ClaimOptions): Promise<ClaimAnswer> {
  checkClaimOptions(options);
  const telling = new Telling(options);
  return telling.of(claimTold(options, telling));
}

async function claimTold(options: ClaimOptions, telling: Telling): Promise<ClaimAnswer> {
  const { clock } = options.zookeeper;
  const { waitMs = 0, answerMs = 5_000, lockPath } = options;
  const bounds = {
    queue: Deadline.after(waitMs, clock),
    answer: Deadline.after(waitMs + answerMs, clock),
  };
  const path =
    lockPath === undefined
      ? claimPath(options.job, options.root)
      : checkPath(lockPath, "the lock path");
  const listeners = {
    warn: once(options.warn ?? (() => {})),
    tellPosition: onChange(options.onPosition ?? (() => {})),
  };
  let renewable = lockPath === undefined; // a path of the user's own is not ours to delete
  let renewals = 0;
  for (let first = true; ; first = false) {
    const session = await nextSession(options, bounds.answer, first);
    checkStopGrace(options.stopGraceMs, session.negotiatedTimeoutMs);
    const protection = lockPath === undefined ? session.protection : undefined;
    const context = {
      session,
      path,
      protection,
      options,
      renewable,
      ...bounds,
      ...listeners,
      telling,
    };
    const result = await attempt(context);
    if (result === "again") continue;
    if (result.outcome !== "near the end") return result;
    const after = await heldBack(context, result.czxid);
    renewals += 1;
    if (after === "fixed" || renewals > RENEWALS_MAX) renewable = false;
    else if (after !== "again") return after;
  }
}

/**
 * Claims a job if nobody holds it, without waiting.
 *
 * @throws as {@link claim}
 */
export function tryClaim(options: Omit<ClaimOptions, "waitMs">): Promise<ClaimAnswer> {
  return claim({ ...options, waitMs: 0 });
}

/** Whoever has had a session has shown that ZooKeeper can be reached, and waits through an outage of it. */
async function nextSession(
  { zookeeper, signal }: ClaimOptions,
  answer: Deadline,
  first: boolean,
): Promise<Session> {
  for (;;) {
    try {
      return await zookeeper.session(answer, signal);
    } catch (error) {
      if (first || !(error instanceof ZooKeeperUnreachableError)) throw error;
      if (!answer.passed) await untilPassed(answer.atMost(SESSION_PAUSE_MS), signal);
      if (answer.passed) throw error;
    }
  }
}

async function heldBack(context: Attempt, czxid: number): ReturnType<typeof holdBack> {
  try {
    return await holdBack(context, czxid);
  } catch (error) {
    if (error instanceof SessionLostError || context.session.state === "LOST") return "again";
    throw error;
  }
}

/** Tells each message only once. */
function once(warn: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message)) return;
    told.add(message);
    warn(message);
  };
}

/** Tells a position only when it is not the one told before. */
function onChange(tell: (position: QueuePosition) => void): (position: QueuePosition) => void {
  let last: QueuePosition | undefined;
  return (position) => {
    if (last?.ahead === position.ahead && last.holder === position.holder) return;
    last = position;
    tell(position);
  };
}
