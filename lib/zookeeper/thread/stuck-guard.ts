/**
 * A user's thread that is stuck must not hold its claims for ever, however well its session's thread is. From then on
 * nothing counts as confirmed, so that every local deadline passes in its time, and the handle is closed one session
 * timeout later: to everybody it looks like a partition.
 */
import type { Clock } from "../../clock.js";
import type { Moment } from "../confirmation.js";
import type { ConfirmingHandle } from "../confirming-handle.js";

/** The guard looks this often within the time that the user's thread may be busy. */
const LOOKS_PER_STUCK_TIME = 20;

export interface StuckGuardOptions {
  clock: Clock;
  handle: ConfirmingHandle;
  /** When the thread that uses the session last had a turn. */
  userSeen: Moment;
  /** How long it may be busy, in milliseconds. */
  stuckMs: number;
  /** Tells that the session is given up. */
  tell: () => void;
  close: () => void;
}

export class StuckGuard {
  readonly #options: StuckGuardOptions;
  #cancel = () => {};

  constructor(options: StuckGuardOptions) {
    this.#options = options;
    this.#lookLater();
  }

  end(): void {
    this.#cancel();
  }

  #lookLater(): void {
    const { clock, stuckMs } = this.#options;
    this.#cancel = clock.after(stuckMs / LOOKS_PER_STUCK_TIME, () => this.#look());
  }

  #look(): void {
    const { clock, handle, userSeen, stuckMs, tell, close } = this.#options;
    if (clock.nowMs() - userSeen.atMs < stuckMs) {
      this.#lookLater();
      return;
    }
    handle.end();
    tell();
    this.#cancel = clock.after(handle.timeoutMs, close);
  }
}
