/**
 * What the holder of a claim sees of it.
 */
import type { FencingToken } from "../../lib/token.js";

/**
 * `released`: the claim was ours until we gave it up. `lost`: it had been lost before. `pending`: it was ours, and that
 * its znode is gone could not be confirmed; the removal goes on until it succeeds or the session ends.
 */
export type ReleaseAnswer = "released" | "lost" | "pending";

/** A claim, held until it is released or lost. It never becomes valid again after either. */
export interface Claim extends AsyncDisposable {
  readonly job: string;
  readonly token: FencingToken;
  /** Full path of the znode that holds the claim. */
  readonly path: string;
  /** Aborts with a {@link ClaimLostError} when the claim is lost, or the local deadline has passed. */
  readonly signal: AbortSignal;
  /** The session timeout that the server granted, in milliseconds. */
  readonly negotiatedTimeoutMs: number;
  /**
   * How long the holder may take to stop its work after the local deadline has passed, in milliseconds: the server
   * cannot hand the job on before that.
   */
  readonly stopGraceMs: number;
  /** Milliseconds until the local deadline; 0 when the claim is lost or released. */
  remainingMs(): number;
  /**
   * Asks ZooKeeper whether the claim is held now: its answer is later than this call, whatever server gives it.
   *
   * @throws ClaimLostError when it is not held any more, or ZooKeeper cannot tell in time
   */
  confirm(signal?: AbortSignal): Promise<void>;
  /**
   * Calls back when less than `beforeMs` is left (default: 30 per cent of the negotiated session timeout, or half of
   * the time until the local deadline where that is less), with the milliseconds that are, once each time the server
   * has been silent for so long; never after the claim has ended. Gives a function that takes the listener away.
   *
   * @throws OptionError when `beforeMs` is not above 0, or more than a confirmation ever gives
   */
  onRunningOut(
    listener: (remainingMs: number) => void,
    options?: { beforeMs?: number },
  ): () => void;
  /**
   * Gives the claim up. Repeats through connection losses; when it cannot be confirmed within `timeoutMs` (default:
   * the negotiated session timeout, or half a second for a claim that is lost) it goes on in the background and
   * answers what is known.
   */
  release(options?: { timeoutMs?: number }): Promise<ReleaseAnswer>;
}
