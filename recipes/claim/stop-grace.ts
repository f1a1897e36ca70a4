/**
 * How much of the session timeout the holder of a claim may take to stop its work after the local deadline.
 */
import { ConfigurationError } from "../../lib/errors.js";

const STOP_GRACE_SHARE = 0.15;

/**
 * Largest share of the session timeout that may be given to stopping: the server is asked six times within a timeout,
 * and one lost answer must not end a claim.
 */
const STOP_GRACE_SHARE_MAX = 0.5;

/** In milliseconds, as is the session timeout. */
export function defaultStopGraceMs(negotiatedTimeoutMs: number): number {
  return negotiatedTimeoutMs * STOP_GRACE_SHARE;
}

/**
 * @throws ConfigurationError when the session timeout that was granted is too short for this grace
 */
export function checkStopGrace(stopGraceMs: number | undefined, negotiatedTimeoutMs: number): void {
  const mostMs = negotiatedTimeoutMs * STOP_GRACE_SHARE_MAX;
  if (stopGraceMs !== undefined && !(stopGraceMs >= 0 && stopGraceMs <= mostMs)) {
    throw new ConfigurationError(
      `a stop grace of ${stopGraceMs} ms does not fit into the session timeout of ${negotiatedTimeoutMs} ms: ` +
        `use at most ${Math.floor(mostMs)} ms, or ask for a longer session timeout`,
    );
  }
}
