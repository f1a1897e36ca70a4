/**
 * Progress of long work on standard error: on a terminal one line that is written over, elsewhere a line now and then.
 */
import type { Report } from "./report.js";

/** How often it is told, in milliseconds. */
const TERMINAL_MS = 200;
const PLAIN_MS = 10_000;

const CLEAR = "\r\x1b[K";

export class Progress {
  #toldAtMs = performance.now();
  readonly #isTerminal: boolean;

  constructor(readonly report: Report) {
    this.#isTerminal = process.stderr.isTTY === true && !report.json;
  }

  tell(message: string, details: Record<string, unknown> = {}): void {
    const nowMs = performance.now();
    if (this.report.quiet || nowMs - this.#toldAtMs < (this.#isTerminal ? TERMINAL_MS : PLAIN_MS))
      return;
    this.#toldAtMs = nowMs;
    if (this.#isTerminal) process.stderr.write(`${CLEAR}${message}`);
    else this.report.note(message, details);
  }

  /** Leaves the line to what comes next. */
  end(): void {
    if (this.#isTerminal && !this.report.quiet) process.stderr.write(CLEAR);
  }
}
