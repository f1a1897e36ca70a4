/**
 * Monotonic time and timers behind one interface, so that recipes can run under virtual time.
 * Wall-clock time is there for people, and is never used to decide anything.
 */

/** A source of monotonic time. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back, also counts while the process is stopped. */
  nowMs(): number;
  /** Milliseconds since 1970, for people only: wall-clock time may jump, and nothing is decided by it. */
  wallMs(): number;
  /** Calls back once after `delayMs`, and gives a function that cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

const NANOSECONDS_PER_MS = 1e6;

/** The machine's monotonic clock. All threads of a process see the same time, unlike with `performance.now()`. */
export const systemClock: Clock = {
  nowMs: () => Number(process.hrtime.bigint()) / NANOSECONDS_PER_MS,
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(0, Math.ceil(delayMs)));
    return () => clearTimeout(timer);
  },
};
