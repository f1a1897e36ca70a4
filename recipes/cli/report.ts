/**
 * What the command line says: results on standard output, everything else on standard error.
 */

import { EXIT, Exit } from "./exit.js";

export interface ReportOptions {
  json: boolean;
  quiet: boolean;
}

export class Report {
  readonly json: boolean;
  readonly quiet: boolean;

  constructor({ json, quiet }: ReportOptions) {
    this.json = json;
    this.quiet = quiet;
  }

  /** A line for people about what goes on; silent with `--quiet`, one JSON object with `--json`. */
  note(message: string, details: Record<string, unknown> = {}): void {
    if (!this.quiet) this.#toStderr(message, details);
  }

  /** Something odd that is no error; also with `--quiet`. */
  readonly warn = (message: string): void => {
    this.#toStderr(`warning: ${message}`, { level: "warning" });
  };

  /** Why the command failed; also with `--quiet`. */
  fail(message: string, details: Record<string, unknown> = {}): void {
    this.#toStderr(message, { level: "error", ...details });
  }

  /**
   * A result. A reader that has gone, as in `fencekeeper get k | head -1`, is no fault.
   *
   * @throws Exit when it cannot be written
   */
  async result(data: string | Uint8Array): Promise<void> {
    const fault = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
      process.stdout.write(data, resolve);
    });
    if (fault && fault.code !== "EPIPE") {
      const message = `the result could not be written to standard output: ${fault.message}`;
      throw new Exit(EXIT.output, message, "OUTPUT_NOT_WRITTEN");
    }
  }

  #toStderr(message: string, details: Record<string, unknown>): void {
    const line = this.json ? JSON.stringify({ ...details, message }) : `fencekeeper: ${message}`;
    process.stderr.write(`${line}\n`);
  }
}
