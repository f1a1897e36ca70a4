/**
 * A small program as a process of its own, with the built library: written to line by line, read line by line, and gone
 * when the test ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, inject, vi } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What every program begins with. Its arguments are in `args`, and `tell` writes a line of JSON. */
const PROLOGUE = `
import { claim, fencedRun, openRedisSink, ZooKeeper } from "./dist/recipes/index.js";
const [connect, redisUrl, ...args] = process.argv.slice(1);
const tell = (line) => console.log(JSON.stringify(line));
`;

const running = new Set<Program>();

afterEach(async () => {
  for (const program of [...running]) await program.kill();
});

export class Program {
  readonly child: ChildProcess;
  readonly ended: Promise<{ status: number | null; signal: NodeJS.Signals | null }>;
  readonly lines: unknown[] = [];
  stderr = "";

  constructor(text: string, ...args: string[]) {
    const servers = [inject("zookeeper"), inject("redis")];
    this.child = spawn(
      process.execPath,
      ["--input-type=module", "--eval", PROLOGUE + text, ...servers, ...args],
      { cwd: ROOT, stdio: ["pipe", "pipe", "pipe"] },
    );
    running.add(this);
    let rest = "";
    this.child.stdout?.setEncoding("utf8").on("data", (data: string) => {
      const lines = (rest + data).split("\n");
      rest = lines.pop() ?? "";
      this.lines.push(...lines.map((line) => JSON.parse(line) as unknown));
    });
    this.child.stderr?.on("data", (data) => {
      this.stderr += data;
    });
    this.ended = new Promise((resolve) => {
      this.child.once("close", (status, signal) => {
        running.delete(this);
        resolve({ status, signal });
      });
    });
  }

  /** Waits until it has written so many lines. */
  async toldLines(count: number): Promise<unknown[]> {
    await vi.waitFor(
      () => {
        if (this.lines.length < count)
          throw new Error(`it told ${this.lines.length} lines: ${this.stderr}`);
      },
      { timeout: 60_000, interval: 20 },
    );
    return this.lines;
  }

  async kill(): Promise<void> {
    this.child.kill("SIGCONT");
    this.child.kill("SIGKILL");
    await this.ended;
  }
}
