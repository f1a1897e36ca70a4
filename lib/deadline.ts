/**
 * One absolute, monotonic deadline that goes down through all waits of a call, together with the caller's signal.
 * A wait ends with what it waited for, or tells which of the two came first.
 */
import type { Clock } from "./clock.js";
import { OptionError } from "./errors.js";

/** Longest delay of a timer: 2^31 - 1 milliseconds, about 24 days. Longer deadlines wait in steps. */
const TIMER_MS_MAX = 2_147_483_647;

/** A point in monotonic time. `Infinity` is never reached. */
export class Deadline {
  private constructor(
    readonly clock: Clock,
    readonly atMs: number,
  ) {}

  /** The deadline `timeoutMs` from now; `Infinity` for none. */
  static after(timeoutMs: number, clock: Clock): Deadline {
    if (Number.isNaN(timeoutMs) || timeoutMs < 0) {
      throw new OptionError(`a timeout must be 0 or more milliseconds; it is ${timeoutMs}`);
    }
    return new Deadline(clock, clock.nowMs() + timeoutMs);
  }

  remainingMs(): number {
    return Math.max(0, this.atMs - this.clock.nowMs());
  }

  get passed(): boolean {
    return this.clock.nowMs() >= this.atMs;
  }

  /** This deadline, or the one `timeoutMs` from now, whichever comes first. */
  atMost(timeoutMs: number): Deadline {
    return new Deadline(this.clock, Math.min(this.atMs, this.clock.nowMs() + timeoutMs));
  }

  /** Calls back once when the deadline passes, and gives a function that cancels it. */
  onPassed(callback: () => void): () => void {
    if (this.atMs === Number.POSITIVE_INFINITY) return () => {};
    const delayMs = Math.min(this.remainingMs(), TIMER_MS_MAX);
    let cancel = this.clock.after(delayMs, () => {
      if (this.passed) callback();
      else cancel = this.onPassed(callback);
    });
    return () => cancel();
  }
}

/** What {@link settleWithin} gives when the promise did not settle first. */
export const TIMED_OUT = Symbol("timed out");

/**
 * Waits for a promise until a deadline or a signal. The promise is not cancelled: a late rejection of it is ignored
 * here, and who needs its late value has to keep it.
 *
 * @returns the promise's value, or {@link TIMED_OUT}
 * @throws the promise's rejection, or the signal's reason
 */
export function settleWithin<T>(
  promise: Promise<T>,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<T | typeof TIMED_OUT> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      promise.catch(() => {}); // the caller has gone; its reason is the one that is told
      reject(signal.reason);
      return;
    }
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      done();
      reject(signal?.reason);
    };
    const cancel = deadline.onPassed(() => {
      done();
      resolve(TIMED_OUT);
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => {
        done();
        resolve(value);
      },
      (error) => {
        done();
        reject(error);
      },
    );
  });
}

/**
 * Waits for a while: until a deadline passes.
 *
 * @throws the signal's reason when it aborts first
 */
export function untilPassed(deadline: Deadline, signal?: AbortSignal): Promise<unknown> {
  return settleWithin(new Promise<never>(() => {}), deadline, signal);
}
