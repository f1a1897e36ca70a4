/**
 * A claim that was granted: its token, the signal that says when it is lost, and its release.
 * The signal is courtesy, it saves work; what keeps an old result out is the fence at the sink.
 */
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import {
  ClaimLostError,
  ConnectionLossError,
  type LossReason,
  NoNodeError,
} from "../../lib/errors.js";
import type { FencingToken } from "../../lib/token.js";
import type { Session, SessionState } from "../../lib/zookeeper/session-port.js";
import { untilState } from "../../lib/zookeeper/until-state.js";
import type { Claim, ReleaseAnswer } from "./claim-port.js";
import type { Contender } from "./contender.js";
import { Countdown } from "./countdown.js";
import { makeWay } from "./make-way.js";
import { defaultStopGraceMs } from "./stop-grace.js";
import type { Telling } from "./telling.js";

/** How long the release of a claim that is lost waits for the removal of its znode. */
const LOST_RELEASE_MS = 500;

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
  telling: Telling;
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
  readonly #telling: Telling;
  readonly #lost = new AbortController();
  readonly #stops: (() => void)[] = [];
  readonly #countdown: Countdown;
  #ended = false;
  #cancelMakingWay = () => {};
  /** A look at our own znode is under way; `again` when another one was asked for meanwhile. */
  #looking: "once" | "again" | undefined;
  #release: Promise<ReleaseAnswer> | undefined;

  constructor(options: HeldClaimOptions) {
    this.job = options.job;
    this.token = options.token;
    this.path = options.path;
    this.#contender = options.contender;
    this.#session = options.contender.session;
    this.stopGraceMs = options.stopGraceMs ?? defaultStopGraceMs(this.negotiatedTimeoutMs);
    this.#abortOnSuspended = options.abortOnSuspended;
    this.#warn = options.warn;
    this.#telling = options.telling;
    this.#telling.granted();
    this.#countdown = new Countdown({
      session: this.#session,
      stopGraceMs: this.stopGraceMs,
      onPassed: () => this.#lose("deadline"),
    });
    this.#stops.push(
      this.#session.keepConfirmed(),
      this.#session.onState((state) => this.#onState(state)),
      this.#session.onWatch(this.path, () => this.#look()),
    );
    this.#onState(this.#session.state);
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get negotiatedTimeoutMs(): number {
    return this.#session.negotiatedTimeoutMs; // another server may grant another one to the same session
  }

  remainingMs(): number {
    return this.#ended ? 0 : this.#countdown.remainingMs();
  }

  onRunningOut(
    listener: (remainingMs: number) => void,
    options: { beforeMs?: number } = {},
  ): () => void {
    return this.#countdown.onRunningOut(listener, options.beforeMs);
  }

  async confirm(signal?: AbortSignal): Promise<void> {
    const signals = signal === undefined ? [this.signal] : [this.signal, signal];
    const deadline = Deadline.after(this.remainingMs(), this.#session.clock);
    const found = await settleWithin(this.#isThere(), deadline, AbortSignal.any(signals));
    if (found === TIMED_OUT) this.#lose("deadline");
    else if (!found) this.#lose("deleted");
    this.signal.throwIfAborted();
    if (this.#ended) throw new ClaimLostError("the claim has been released", "closed");
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
    this.#cancelMakingWay();
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
    const gone = lost || this.#session.state === "LOST";
    const answer = gone ? "lost" : removed === true ? "released" : "pending";
    this.#telling.released(answer);
    return answer;
  }

  #onState(state: SessionState): void {
    if (this.#ended) return;
    if (state === "LOST") this.#lose("expired");
    else if (state === "CLOSED") this.#lose("closed");
    else if (state === "SUSPENDED" && this.#abortOnSuspended) this.#lose("suspended");
    else if (state === "CONNECTED") this.#look();
  }

  /**
   * Reads our own znode and leaves a watch on it: when a stranger has deleted it, the claim is lost. One look at a
   * time, however the connection comes and goes.
   */
  #look(): void {
    if (this.#ended) return;
    if (this.#looking !== undefined) {
      this.#looking = "again";
      return;
    }
    this.#looking = "once";
    this.#session
      .read(this.path, { watch: true })
      .then(
        ({ stat }) => {
          if (stat.ephemeralOwner !== this.#session.id) this.#lose("deleted");
        },
        (error) => {
          // any other fault says nothing about the znode; the next connection looks again, and the deadline runs on
          if (error instanceof NoNodeError) this.#lose("deleted");
        },
      )
      .finally(() => {
        const again = this.#looking === "again" && this.#session.state === "CONNECTED";
        this.#looking = undefined;
        if (again) this.#look();
      });
  }

  /** Looks at our own znode, through connection losses. */
  async #isThere(): Promise<boolean> {
    for (;;) {
      try {
        return await this.#contender.isThere();
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error;
        const forever = Deadline.after(Number.POSITIVE_INFINITY, this.#session.clock);
        await untilState(this.#session, (state) => state !== "SUSPENDED", forever);
      }
    }
  }

  #lose(reason: LossReason): void {
    if (this.#ended) return;
    this.#end();
    this.#telling.lost(reason);
    this.#cancelMakingWay = makeWay(this.#contender, {
      ...{ reason, graceMs: this.stopGraceMs, warn: this.#warn },
    });
    this.#lost.abort(new ClaimLostError(describe(reason, this.job, this.token.sequence), reason));
  }

  #end(): void {
    this.#ended = true;
    this.#countdown.end();
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
