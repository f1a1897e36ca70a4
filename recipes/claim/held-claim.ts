/**
 * A claim that was granted: its token, the signal that says when it is lost, and its release.
 * The signal is courtesy, it saves work; what keeps an old result out is the fence at the sink.
 */
import { Deadline, settleWithin } from "../../lib/deadline.js";
import {
  ClaimLostError,
  ConfigurationError,
  type LossReason,
  NoNodeError,
} from "../../lib/errors.js";
import type { FencingToken } from "../../lib/token.js";
import type { Session, SessionState } from "../../lib/zookeeper/session-port.js";
import type { Contender } from "./contender.js";

/** Default share of the session timeout that is left to stop the work in. */
const STOP_GRACE_SHARE = 0.15;

/** Share of the session timeout kept back for clocks that tick apart and timers that fire late. */
const MARGIN_SHARE = 0.1;

/**
 * Largest share of the session timeout that may be given to stopping: the server is asked six times within a timeout,
 * and one lost answer must not end a claim.
 */
const STOP_GRACE_SHARE_MAX = 0.5;

/** How long the release of a claim that is lost waits for the removal of its znode. */
const LOST_RELEASE_MS = 500;

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
   * Gives the claim up. Repeats through connection losses; when it cannot be confirmed within `timeoutMs` (default:
   * the negotiated session timeout, or half a second for a claim that is lost) it goes on in the background and
   * answers what is known.
   */
  release(options?: { timeoutMs?: number }): Promise<ReleaseAnswer>;
}

export interface HeldClaimOptions {
  contender: Contender;
  path: string;
  job: string;
  token: FencingToken;
  /** See {@link Claim.stopGraceMs}; default: 15 per cent of the negotiated session timeout. */
  stopGraceMs: number | undefined;
  /** Give the claim up as soon as the connection breaks. */
  abortOnSuspended: boolean;
  warn: (message: string) => void;
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

export class HeldClaim implements Claim {
  readonly job: string;
  readonly token: FencingToken;
  readonly path: string;
  readonly #session: Session;
  readonly #contender: Contender;
  readonly stopGraceMs: number;
  readonly #abortOnSuspended: boolean;
  readonly #warn: (message: string) => void;
  readonly #lost = new AbortController();
  readonly #stops: (() => void)[] = [];
  #cancelDeadline = () => {};
  #ended = false;
  #release: Promise<ReleaseAnswer> | undefined;

  constructor(options: HeldClaimOptions) {
    this.job = options.job;
    this.token = options.token;
    this.path = options.path;
    this.#contender = options.contender;
    this.#session = options.contender.session;
    this.stopGraceMs = options.stopGraceMs ?? this.negotiatedTimeoutMs * STOP_GRACE_SHARE;
    this.#abortOnSuspended = options.abortOnSuspended;
    this.#warn = options.warn;
    this.#stops.push(
      this.#session.keepConfirmed(),
      this.#session.onState((state) => this.#onState(state)),
      this.#session.onWatch(this.path, () => this.#look()),
    );
    this.#onState(this.#session.state);
    this.#armDeadline();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get negotiatedTimeoutMs(): number {
    return this.#session.negotiatedTimeoutMs; // another server may grant another one to the same session
  }

  remainingMs(): number {
    if (this.#ended) return 0;
    return Math.max(0, this.#deadlineAtMs() - this.#session.clock.nowMs());
  }

  release({ timeoutMs }: { timeoutMs?: number } = {}): Promise<ReleaseAnswer> {
    this.#release ??= this.#releaseWithin(timeoutMs);
    return this.#release;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #releaseWithin(timeoutMs: number | undefined): Promise<ReleaseAnswer> {
    // A process that was stopped sees its timers late: a deadline that has passed is a loss, fired or not.
    if (!this.#ended && this.remainingMs() === 0) this.#lose("deadline");
    const lost = this.#lost.signal.aborted;
    this.#end();
    const removal = this.#contender.remove();
    removal.catch((error) => {
      this.#warn(`the znode ${this.path} could not be removed, it goes with the session: ${error}`);
    });
    // a claim that is lost has nothing to confirm: its znode goes with the session at the latest
    const boundMs = timeoutMs ?? (lost ? LOST_RELEASE_MS : this.negotiatedTimeoutMs);
    const deadline = Deadline.after(boundMs, this.#session.clock);
    const removed = await settleWithin(
      removal.then(
        () => true,
        () => false, // told by the warning above; a result that was committed must not be hidden by it
      ),
      deadline,
    );
    if (lost || this.#session.state === "LOST") return "lost";
    return removed === true ? "released" : "pending";
  }

  /** The server keeps the session for its timeout after the last exchange; we are done, and stopped, before that. */
  #deadlineAtMs(): number {
    const { lastConfirmedAtMs } = this.#session;
    const marginMs = this.negotiatedTimeoutMs * MARGIN_SHARE;
    return lastConfirmedAtMs + this.negotiatedTimeoutMs - marginMs - this.stopGraceMs;
  }

  #armDeadline(): void {
    const delayMs = this.#deadlineAtMs() - this.#session.clock.nowMs();
    this.#cancelDeadline = this.#session.clock.after(Math.max(0, delayMs), () => {
      if (this.#ended) return;
      if (this.remainingMs() === 0) this.#lose("deadline");
      else this.#armDeadline();
    });
  }

  #onState(state: SessionState): void {
    if (this.#ended) return;
    if (state === "LOST") this.#lose("expired");
    else if (state === "CLOSED") this.#lose("closed");
    else if (state === "SUSPENDED" && this.#abortOnSuspended) this.#lose("suspended");
    else if (state === "CONNECTED") this.#look();
  }

  /** Reads our own znode and leaves a watch on it: when a stranger has deleted it, the claim is lost. */
  #look(): void {
    if (this.#ended) return;
    this.#session.read(this.path, { watch: true }).then(
      ({ stat }) => {
        if (stat.ephemeralOwner !== this.#session.id) this.#lose("deleted");
      },
      (error) => {
        // any other fault says nothing about the znode; the next connection looks again, and the deadline runs on
        if (error instanceof NoNodeError) this.#lose("deleted");
      },
    );
  }

  #lose(reason: LossReason): void {
    if (this.#ended) return;
    this.#end();
    this.#lost.abort(new ClaimLostError(describe(reason, this.job, this.token.sequence), reason));
  }

  #end(): void {
    this.#ended = true;
    this.#cancelDeadline();
    for (const stop of this.#stops.splice(0)) stop();
  }
}

const REASONS: Record<LossReason, string> = {
  expired: "the ZooKeeper session expired",
  deleted: "its znode was deleted by somebody else",
  deadline:
    "ZooKeeper has not confirmed the session for so long that the job may soon be handed on",
  suspended: "the connection to ZooKeeper broke",
  closed: "the ZooKeeper session was closed",
};

function describe(reason: LossReason, job: string, sequence: number): string {
  return `the claim of job ${JSON.stringify(job)} with token ${sequence} is lost: ${REASONS[reason]}`;
}
