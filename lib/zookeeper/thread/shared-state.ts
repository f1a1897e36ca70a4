/**
 * What two threads of a session know at once, without a message: moments of the monotonic clock, and whether the
 * handle is closed. A thread that was busy for long can read here what has happened before any message reaches it.
 */
import type { Moment } from "../confirmation.js";

const NANOSECONDS_PER_MS = 1e6;
const NEVER = -1n;

/** Places in the shared memory: two 64-bit moments, then a 32-bit flag. */
const CONFIRMED = 0;
const USER_SEEN = 1;
const MOMENTS = 2;

export class SharedState {
  readonly buffer: SharedArrayBuffer;
  readonly #moments: BigInt64Array;
  readonly #closed: Int32Array;

  /** Over the given memory, or over fresh memory. */
  constructor(buffer?: SharedArrayBuffer) {
    this.buffer = buffer ?? new SharedArrayBuffer(MOMENTS * 8 + 4);
    this.#moments = new BigInt64Array(this.buffer, 0, MOMENTS);
    this.#closed = new Int32Array(this.buffer, MOMENTS * 8, 1);
    if (buffer === undefined) this.#moments.fill(NEVER);
  }

  /** Start of the last exchange that the server confirmed. */
  get confirmed(): Moment {
    return new SharedMoment(this.#moments, CONFIRMED);
  }

  /** When the thread that uses the session last had a turn. */
  get userSeen(): Moment {
    return new SharedMoment(this.#moments, USER_SEEN);
  }

  /** Says that nothing of the handle is left. */
  setClosed(): void {
    Atomics.store(this.#closed, 0, 1);
    Atomics.notify(this.#closed, 0);
  }

  /** Blocks this thread until the handle is closed, or the time has passed. */
  waitUntilClosed(timeoutMs: number): void {
    Atomics.wait(this.#closed, 0, 0, timeoutMs);
  }
}

class SharedMoment implements Moment {
  constructor(
    readonly moments: BigInt64Array,
    readonly index: number,
  ) {}

  get atMs(): number {
    const nanoseconds = Atomics.load(this.moments, this.index);
    return nanoseconds === NEVER
      ? Number.NEGATIVE_INFINITY
      : Number(nanoseconds) / NANOSECONDS_PER_MS;
  }

  set atMs(atMs: number) {
    Atomics.store(this.moments, this.index, BigInt(Math.floor(atMs * NANOSECONDS_PER_MS)));
  }
}
