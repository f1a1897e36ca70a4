/**
 * The built command line as a process: started with the test's servers, watched, and gone when the test ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, expect, inject, vi } from "vitest";

export const MAIN = fileURLToPath(new URL("../../dist/recipes/cli/main.js", import.meta.url));

const running = new Set<CliProcess>();

afterEach(async () => {
  for (const process of [...running]) await process.end();
});

export interface CliOptions {
  /** Added to the environment; undefined takes a variable away. */
  env?: Record<string, string | undefined>;
  input?: string | Buffer;
  cwd?: string;
}

export interface CliEnd {
  /** Exit code; undefined when a signal ended it. */
  status: number | undefined;
  signal: NodeJS.Signals | undefined;
  stdout: Buffer;
  stderr: string;
}

export class CliProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<CliEnd>;
  readonly #stdout: Buffer[] = [];
  #stderr = "";

  constructor(args: string[], { env = {}, input, cwd }: CliOptions = {}) {
    this.child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
      env: {
        ...process.env,
        ZOOKEEPER_CONNECT: inject("zookeeper"),
        REDIS_URL: inject("redis"),
        ...env,
      },
    });
    running.add(this);
    this.child.stdout?.on("data", (data) => this.#stdout.push(data));
    this.child.stderr?.on("data", (data) => {
      this.#stderr += data;
    });
    this.child.stdin?.on("error", () => {}); // a command that ends without reading its input
    this.child.stdin?.end(input);
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code, signal) => {
        running.delete(this);
        resolve({
          status: code ?? undefined,
          signal: signal ?? undefined,
          stdout: Buffer.concat(this.#stdout),
          stderr: this.#stderr,
        });
      });
    });
  }

  get stdout(): string {
    return Buffer.concat(this.#stdout).toString("utf8");
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Waits until the text is on standard output or standard error. */
  async until(text: string, timeoutMs = 30_000): Promise<void> {
    await vi.waitFor(() => expect(this.stdout + this.stderr).toContain(text), {
      timeout: timeoutMs,
      interval: 10,
    });
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Ends it in whatever state it is; a command it runs ends with its own test's means. */
  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGCONT");
      this.child.kill("SIGTERM"); // which it passes on to its command
      const timer = setTimeout(() => this.child.kill("SIGKILL"), 5_000);
      await this.ended;
      clearTimeout(timer);
    }
  }
}

export function startCli(args: string[], options?: CliOptions): CliProcess {
  return new CliProcess(args, options);
}

/** Runs the command line to its end. */
export function cli(args: string[], options?: CliOptions): Promise<CliEnd> {
  return startCli(args, options).ended;
}
