import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OptionError, ResultTooLargeError } from "../../lib/errors.js";
import { CommandOutputError } from "../../recipes/command/captured-output.js";
import { type RunningCommand, startCommand } from "../../recipes/command/running-command.js";
import type { CommandOptions } from "../../recipes/command/spawn-command.js";

/** Writes every byte value, 4096 times over. */
const ALL_BYTES = "process.stdout.write(Buffer.alloc(2 ** 20, Uint8Array.from(Array(256).keys())))";
const allBytes = Buffer.alloc(2 ** 20, Uint8Array.from(Array(256).keys()));

let folder: string;
let outFile: string;
let descriptors: number[];
let commands: RunningCommand[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fencekeeper-"));
  outFile = join(folder, "out");
  descriptors = [];
  commands = [];
});

afterEach(async () => {
  const left = commands.filter(({ pid }) => existsSync(`/proc/${pid}`));
  await Promise.all(commands.map((command) => command.stopTree({ graceMs: 0 })));
  for (const fd of descriptors) closeSync(fd);
  rmSync(folder, { recursive: true });
  expect(left.map(({ pid }) => pid)).toEqual([]);
});

function opened(path: string, flags: number | string): number {
  const fd = openSync(path, flags);
  descriptors.push(fd);
  return fd;
}

function closed(fd: number): void {
  descriptors.splice(descriptors.indexOf(fd), 1);
  closeSync(fd);
}

function fifo(name = randomUUID()): string {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  return path;
}

async function start(args: [string, ...string[]], options: Partial<CommandOptions> = {}) {
  const [command, ...rest] = args;
  const running = await startCommand({
    command,
    args: rest,
    env: process.env,
    capture: true,
    captureBytesMax: 2 ** 24,
    stdoutFd: options.stdoutFd ?? opened(outFile, "w"),
    ...options,
  });
  commands.push(running);
  return running;
}

describe("captured output", () => {
  it("is whole and passed through unchanged, whatever its bytes", async () => {
    const command = await start([process.execPath, "-e", ALL_BYTES]);
    expect((await command.output()).equals(allBytes)).toBe(true);
    expect(readFileSync(outFile).equals(allBytes)).toBe(true);
    expect(command.passThroughFailure).toBeUndefined();
  });

  it("may be empty", async () => {
    const command = await start(["true"]);
    expect(await command.output()).toEqual(Buffer.alloc(0));
  });

  it("may be as large as the limit", async () => {
    const command = await start([process.execPath, "-e", ALL_BYTES], { captureBytesMax: 2 ** 20 });
    expect((await command.output()).length).toBe(2 ** 20);
  });

  it("above the limit is refused, not cut, and still passed through to its end", async () => {
    const limit = { captureBytesMax: 2 ** 20 - 1 };
    const command = await start([process.execPath, "-e", ALL_BYTES], limit);
    await expect(command.output()).rejects.toThrow(ResultTooLargeError);
    await expect(command.output()).rejects.toThrow(
      "1048576 bytes; the limit for a result is 1048575",
    );
    expect(readFileSync(outFile).equals(allBytes)).toBe(true);
    expect(await command.exited).toEqual({ code: 0 });
  });

  it("includes what a background process writes while it ends by itself", async () => {
    const go = fifo();
    const script = `(read -r line <'${go}'; echo late) & echo early`;
    const leftover = { settleMs: 30_000, graceMs: 0 };
    const command = await start(["sh", "-c", script], { leftover });
    await command.exited;
    writeFileSync(go, "go\n");
    expect(await command.treeGone()).toBe(0);
    expect((await command.output()).toString()).toBe("early\nlate\n");
  });

  it("arrives as it comes, not at the end", async () => {
    const go = fifo();
    const command = await start(["sh", "-c", `echo first; read -r line <'${go}'; echo second`]);
    await vi.waitFor(() => expect(readFileSync(outFile, "utf8")).toBe("first\n"), 10_000);
    writeFileSync(go, "go\n");
    expect((await command.output()).toString()).toBe("first\nsecond\n");
  });

  it("waits for a slow reader without blocking us, and the command waits with it", async () => {
    const pipe = fifo();
    const readFd = opened(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const stdoutFd = opened(pipe, "w");
    const command = await start([process.execPath, "-e", ALL_BYTES], { stdoutFd });
    const received: Buffer[] = [];
    await vi.waitFor(() => {
      received.push(...readAvailable(readFd));
      expect(Buffer.concat(received).length).toBe(2 ** 20);
    }, 20_000);
    await command.passedThrough();
    expect(Buffer.concat(received).equals(allBytes)).toBe(true);
    expect((await command.output()).equals(allBytes)).toBe(true);
  });

  it("is still captured when our own reader goes away, and the command does not notice", async () => {
    const [pipe, go] = [fifo(), fifo()];
    const readFd = opened(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const stdoutFd = opened(pipe, "w");
    const script = `echo first; read -r line <'${go}'; head -c 1000000 /dev/zero; exit 3`;
    const command = await start(["sh", "-c", script], { stdoutFd });
    await vi.waitFor(() => {
      expect(Buffer.concat(readAvailable(readFd)).toString()).toBe("first\n");
    }, 10_000);
    closed(readFd);
    writeFileSync(go, "go\n");
    expect((await command.output()).length).toBe(1_000_006);
    expect(await command.exited).toEqual({ code: 3 });
    expect(command.passThroughFailure).toMatchObject({ code: "EPIPE" });
  });

  it("is still captured when the disk behind our standard output is full", async () => {
    const command = await start(["echo", "x"], { stdoutFd: opened("/dev/full", "w") });
    expect((await command.output()).toString()).toBe("x\n");
    expect(command.passThroughFailure).toMatchObject({ code: "ENOSPC" });
  });

  it("is refused when a process that escaped from the tree keeps it open", async () => {
    const [pidFile, started] = [join(folder, "pid"), fifo()];
    const daemon = `echo $$ >'${pidFile}'; echo >'${started}'; exec sleep 600`;
    const script = `env -i "$(command -v setsid)" -f sh -c "$1"; read -r line <'${started}'`;
    const command = await start(["sh", "-c", script, "sh", daemon]);
    try {
      await expect(command.output()).rejects.toThrow(CommandOutputError);
    } finally {
      process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
    }
  });
});

describe("output that is not captured", () => {
  it("goes straight to where ours goes", async () => {
    const command = await start([process.execPath, "-e", ALL_BYTES], { capture: false });
    expect(await command.treeGone()).toBe(0);
    await command.passedThrough();
    expect(readFileSync(outFile).equals(allBytes)).toBe(true);
  });

  it("cannot be asked for", async () => {
    const command = await start(["true"], { capture: false });
    await expect(command.output()).rejects.toThrow(OptionError);
    await command.treeGone();
  });
});

/** What is in a non-blocking pipe now. */
function readAvailable(fd: number): Buffer[] {
  const chunks: Buffer[] = [];
  const buffer = Buffer.alloc(65_536);
  try {
    for (let size = 1; size > 0; ) {
      size = readSync(fd, buffer);
      chunks.push(Buffer.from(buffer.subarray(0, size)));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error; // EAGAIN: nothing more for now
  }
  return chunks;
}
