/** Writes to an inherited descriptor without changing it, blocking the event loop, or failing for want of a reader. */
import { close, constants, fstatSync, openSync, write } from "node:fs";
import { promisify } from "node:util";
import type { Clock } from "../../lib/clock.js";

const closeAsync = promisify(close);

/** Pause before a full pipe is tried again, in milliseconds. */
const FULL_PAUSE_MS = 5;

/**
 * The pass-through side of captured output.
 *
 * `process.stdout` is not used for it. It would set the pipe to non-blocking, and the pipe is shared with the command
 * when standard error goes to the same place (`2>&1`): the command's own writes would fail. And it writes to files
 * and terminals on the main thread, where the ZooKeeper session lives: a terminal stopped with Ctrl-S would cost the
 * claim. So a pipe or terminal is opened a second time, non-blocking, through /proc; whatever cannot be
 * opened that way (a socket, another platform) is written to as it is, from the thread pool.
 */
export class OutputTarget {
  readonly #clock: Clock;
  readonly #fd: number;
  readonly #owned: boolean;
  #failure: Error | undefined;

  constructor(fd: number, clock: Clock) {
    this.#clock = clock;
    const reopened = reopenNonBlocking(fd);
    this.#fd = reopened ?? fd;
    this.#owned = reopened !== undefined;
  }

  /** Why nothing is passed through any more; undefined while all is well. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when everything is written, which may take as long as the reader likes; after a failure at once. */
  async write(chunk: Buffer): Promise<void> {
    for (let rest = chunk; rest.length > 0 && this.#failure === undefined; ) {
      try {
        rest = rest.subarray(await writeSome(this.#fd, rest));
      } catch (error) {
        // EPIPE, a full disk: the command must not suffer for it. Its output is still captured.
        if (!isFull(error)) this.#failure = error as Error;
        else await new Promise<void>((resolve) => this.#clock.after(FULL_PAUSE_MS, resolve));
      }
    }
  }

  async close(): Promise<void> {
    if (this.#owned) await closeAsync(this.#fd);
  }
}

/** Gives how many bytes were written, at the descriptor's own position. */
function writeSome(fd: number, bytes: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, null, (error, bytesWritten) =>
      error ? reject(error) : resolve(bytesWritten),
    );
  });
}

function isFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}

function reopenNonBlocking(fd: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const stat = fstatSync(fd);
    // A file is never full, and opened again it would be written from its start.
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return undefined;
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    return openSync(`/proc/self/fd/${fd}`, flags);
  } catch {
    return undefined; // no /proc, a terminal of another user, no reader any more: then as it is
  }
}
