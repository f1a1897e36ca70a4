/**
 * Tells on the channel `fencekeeper:claim` what becomes of one call of `claim`, and of the claim that it granted.
 */
import type { Clock } from "../../lib/clock.js";
import { FencekeeperError, type LossReason } from "../../lib/errors.js";
import { type ClaimEvent, claimChannel } from "../../lib/telemetry/channels.js";
import { safePrefix } from "../../lib/telemetry/prefix.js";
import type { ClaimAnswer, ClaimOptions } from "./claim-options.js";
import type { ReleaseAnswer } from "./claim-port.js";

/** An event without the prefix, one kind at a time. */
type Untold<Event> = Event extends ClaimEvent ? Omit<Event, "jobPrefix"> : never;

export class Telling {
  readonly #clock: Clock;
  readonly #options: ClaimOptions;
  readonly #askedAtMs: number;
  #grantedAtMs = 0;
  #hasEnded = false;

  constructor(options: ClaimOptions) {
    this.#clock = options.zookeeper.clock;
    this.#options = options;
    this.#askedAtMs = this.#clock.nowMs();
  }

  /** Tells of an answer or an error of `claim`; a grant is told by {@link granted}, before the claim can be lost. */
  async of(asking: Promise<ClaimAnswer>): Promise<ClaimAnswer> {
    try {
      const answer = await asking;
      if (answer.outcome === "busy") {
        this.#publish({ kind: "busy", waitMs: this.#waitMs, ahead: answer.ahead });
      }
      return answer;
    } catch (error) {
      this.#publish({ kind: "failed", waitMs: this.#waitMs, code: this.#codeOf(error) });
      throw error;
    }
  }

  granted(): void {
    this.#grantedAtMs = this.#clock.nowMs();
    this.#publish({ kind: "granted", waitMs: this.#waitMs });
  }

  lost(reason: LossReason): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#publish({ kind: "lost", heldMs: this.#heldMs, reason });
  }

  /** A claim that was found to be lost at its release only went with its session. */
  released(answer: ReleaseAnswer): void {
    if (answer === "lost") this.lost("expired");
    else
      this.#publish({ kind: "released", heldMs: this.#heldMs, confirmed: answer === "released" });
  }

  get #waitMs(): number {
    return this.#clock.nowMs() - this.#askedAtMs;
  }

  get #heldMs(): number {
    return this.#clock.nowMs() - this.#grantedAtMs;
  }

  #codeOf(error: unknown): string {
    const { signal } = this.#options;
    if (signal?.aborted && error === signal.reason) return "CANCELLED";
    return error instanceof FencekeeperError ? error.code : "OTHER";
  }

  #publish(event: Untold<ClaimEvent>): void {
    if (!claimChannel.hasSubscribers) return;
    const { job, jobPrefixOf } = this.#options;
    claimChannel.publish({ jobPrefix: safePrefix(job, jobPrefixOf), ...event });
  }
}
