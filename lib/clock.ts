/**
 * Monotonic time and timers behind one interface, so that recipes can run under virtual time.
 * Wall-clock time is never used to decide anything.
 */

/** A source of monotonic time. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back, also counts while the process is stopped. */
  nowMs(): number;
  /** Calls back once after `delayMs`, and gives a function that cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The process's own monotonic clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(0, Math.ceil(delayMs)));
    return () => clearTimeout(timer);
  },
};
