/**
 * The claim recipe: stand in the queue of a job's contenders until we are first, and hold the claim.
 * After ZooKeeper's lock recipe without herd effect (recipes page of its documentation), with the create and the first
 * listing in one round trip.
 */
import { Deadline } from "../lib/deadline.js";
import { checkPath } from "../lib/zookeeper/connect-string.js";
import { claimPath } from "../lib/zookeeper/paths.js";
import { attempt } from "./claim/attempt.js";
import { type ClaimAnswer, type ClaimOptions, checkClaimOptions } from "./claim/claim-options.js";
import { checkStopGrace } from "./claim/held-claim.js";

export type { ClaimAnswer, ClaimOptions } from "./claim/claim-options.js";
export type { Claim, ReleaseAnswer } from "./claim/held-claim.js";

/**
 * Claims a job.
 *
 * @throws OptionError, JobIdError when an option cannot be used
 * @throws ZooKeeperUnreachableError when ZooKeeper does not answer in time
 * @throws ZooKeeperDeniedError when an access control list forbids what is needed
 * @throws ConfigurationError when the chroot is missing, or the session timeout too short for the stop grace
 * @throws SequenceExhaustedError when the claim path's counter is at its end
 * @throws the signal's reason when it aborts before the grant
 */
export async function claim(options: ClaimOptions): Promise<ClaimAnswer> {
  checkClaimOptions(options);
  const path =
    options.lockPath === undefined
      ? claimPath(options.job, options.root)
      : checkPath(options.lockPath, "the lock path");
  const { clock } = options.zookeeper;
  const queue = Deadline.after(options.waitMs ?? 0, clock);
  const answer = Deadline.after((options.waitMs ?? 0) + (options.answerMs ?? 5_000), clock);
  const warn = once(options.warn ?? (() => {}));
  for (;;) {
    const session = await options.zookeeper.session(answer, options.signal);
    checkStopGrace(options.stopGraceMs, session.negotiatedTimeoutMs);
    const result = await attempt({ session, path, options, queue, answer, warn });
    if (result !== "again") return result;
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
