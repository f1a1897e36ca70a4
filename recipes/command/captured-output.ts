/** A command's standard output: passed through as it comes, and kept whole up to a limit. */
import type { Readable } from "node:stream";
import type { Clock } from "../../lib/clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { FencekeeperError, ResultTooLargeError } from "../../lib/errors.js";
import { OutputTarget } from "./output-target.js";

/** The output ended in a way that leaves open whether it is whole; it is refused. */
export class CommandOutputError extends FencekeeperError {
  readonly code = "COMMAND_OUTPUT_INCOMPLETE";
}

/**
 * How long the pipe may stay open without a byte once the tree is gone, in milliseconds. Then somebody outside the tree
 * holds it, and its end may never come.
 */
const END_WAIT_MS = 2_000;

export interface CapturedOutputOptions {
  stream: Readable;
  passThroughFd: number;
  bytesMax: number;
  clock: Clock;
}

export class CapturedOutput {
  readonly #options: CapturedOutputOptions;
  readonly #target: OutputTarget;
  readonly #finished: Promise<void>;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #writing = false;

  constructor(options: CapturedOutputOptions) {
    this.#options = options;
    this.#target = new OutputTarget(options.passThroughFd, options.clock);
    this.#finished = this.#pump();
    this.#finished.catch(() => {}); // told by whole(), when somebody asks
  }

  /** Why the output is no longer passed through (it is still captured); undefined while it is. */
  get passThroughFailure(): Error | undefined {
    return this.#target.failure;
  }

  /**
   * The whole output; to be asked for when the tree is gone.
   *
   * @throws ResultTooLargeError above the limit: refused, never cut
   * @throws CommandOutputError when its end does not come or reading fails
   */
  async whole(): Promise<Buffer> {
    await this.#end();
    const { bytesMax } = this.#options;
    if (this.#bytes > bytesMax) {
      throw new ResultTooLargeError(
        `the output has ${this.#bytes} bytes; the limit for a result is ${bytesMax}`,
      );
    }
    return Buffer.concat(this.#chunks);
  }

  /** Resolves when the output has been passed through as far as it can be. */
  async passedThrough(): Promise<void> {
    await this.#end().catch(() => {}); // nothing more will come; whole() tells why
  }

  async #end(): Promise<void> {
    const { clock, stream } = this.#options;
    for (;;) {
      const bytesBefore = this.#bytes;
      const end = await settleWithin(this.#finished, Deadline.after(END_WAIT_MS, clock));
      if (end !== TIMED_OUT) return;
      // A slow reader of ours is no reason to give up.
      if (this.#writing || this.#bytes !== bytesBefore) continue;
      stream.destroy();
      throw new CommandOutputError(
        "a process outside the command's tree keeps its standard output open; whether it is whole cannot be known",
      );
    }
  }

  /** Reads on only when what was read is written: a slow reader slows the command down, as without us. */
  async #pump(): Promise<void> {
    try {
      for await (const chunk of this.#options.stream as AsyncIterable<Buffer>) {
        this.#keep(chunk);
        this.#writing = true;
        await this.#target.write(chunk);
        this.#writing = false;
      }
    } catch (cause) {
      throw new CommandOutputError("the command's standard output could not be read", { cause });
    } finally {
      await this.#target.close();
    }
  }

  #keep(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#options.bytesMax) this.#chunks.push(chunk);
    else this.#chunks = [];
  }
}
