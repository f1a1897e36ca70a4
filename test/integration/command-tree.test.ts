import { randomUUID } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { processSystem } from "../../recipes/command/process-system.js";
import { type RunningCommand, startCommand } from "../../recipes/command/running-command.js";
import type { CommandOptions } from "../../recipes/command/spawn-command.js";

/** Long enough that a test which waits for it fails. */
const LONG_MS = 120_000;

let folder: string;
let stdoutFd: number;
/** In the environment of everything a test starts, so that what is left can be found without the code under test. */
let testId: string;

beforeEach(() => {
  testId = randomUUID();
  folder = mkdtempSync(join(tmpdir(), "fencekeeper-"));
  stdoutFd = openSync(join(folder, "out"), "w");
});

afterEach(() => {
  const left = processesOfTest();
  for (const pid of left) process.kill(pid, "SIGKILL");
  closeSync(stdoutFd);
  rmSync(folder, { recursive: true });
  expect(left).toEqual([]);
});

function processesOfTest(): number[] {
  return processSystem
    .listProcesses(0)
    .filter(({ pid, state }) => state !== "zombie" && environmentOf(pid).includes(testId))
    .map(({ pid }) => pid);
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return ""; // it ended between the two looks
  }
}

function isAlive(pid: number): boolean {
  return processSystem.listProcesses(0).some((e) => e.pid === pid && e.state !== "zombie");
}

async function shell(
  script: string,
  options: Partial<CommandOptions> = {},
): Promise<RunningCommand> {
  return startCommand({
    command: "sh",
    // Shells say on standard error how their children ended.
    args: ["-c", `exec 2>/dev/null; ${script}`],
    env: { ...process.env, TEST_ID: testId },
    capture: false,
    captureBytesMax: 0,
    stdoutFd,
    ...options,
  });
}

/** Waits until the script has written as many lines as it is to write. */
async function lines(count: number): Promise<string[]> {
  const read = () => readFileSync(join(folder, "out"), "utf8").split("\n").slice(0, -1);
  await vi.waitFor(() => expect(read().length).toBe(count), 20_000);
  return read();
}

const WAIT_FOREVER = "while :; do sleep 0.05; done";

describe("stopping the tree", () => {
  it("asks with TERM, and a command that obeys has the status of that signal", async () => {
    const command = await shell("echo ready; exec sleep 600");
    await lines(1);
    await command.stopTree({ graceMs: LONG_MS });
    expect(processesOfTest()).toEqual([]);
    expect(await command.exited).toEqual({ signal: "SIGTERM" });
  });

  it("may ask with another signal", async () => {
    const command = await shell("echo ready; exec sleep 600");
    await lines(1);
    await command.stopTree({ termSignal: "SIGQUIT", graceMs: LONG_MS });
    expect(await command.exited).toEqual({ signal: "SIGQUIT" });
  });

  it("kills a command that ignores TERM when the grace is over", async () => {
    const command = await shell(`trap '' TERM; echo ready; ${WAIT_FOREVER}`);
    await lines(1);
    await command.stopTree({ graceMs: 100 });
    expect(processesOfTest()).toEqual([]);
    expect(await command.exited).toEqual({ signal: "SIGKILL" });
  });

  it("lets a trap clean up with commands of its own within the grace", async () => {
    const command = await shell(
      `trap 'sleep 0.2; sh -c "echo cleaned"; exit 5' TERM; echo ready; ${WAIT_FOREVER}`,
    );
    await lines(1);
    await command.stopTree({ graceMs: LONG_MS });
    expect(await lines(2)).toEqual(["ready", "cleaned"]);
    expect(await command.exited).toEqual({ code: 5 });
  });

  const trees: [string, string][] = [
    ["grandchildren", "sh -c 'sleep 600 & echo $$; wait' & wait"],
    ["a grandchild in a session of its own", "setsid sh -c 'echo $$; sleep 600' & wait"],
    [
      "a daemon that forked twice, in a session of its own",
      "setsid sh -c 'sh -c \"echo \\$\\$; sleep 600\" & exit 0'; sleep 600",
    ],
    [
      "a child in a session of its own that has cleared its environment",
      'env -i "$(command -v setsid)" "$(command -v sh)" -c \'echo $$; exec sleep 600\' & wait',
    ],
    ["a member that is stopped", "sh -c 'echo $$; kill -STOP $$; sleep 600' & wait"],
    ["a command that has stopped itself", "echo $$; kill -STOP $$; sleep 600"],
    [
      "a stopped member with a trap",
      "sh -c 'trap \"exit 0\" TERM; echo $$; kill -STOP $$; sleep 600' & wait",
    ],
  ];
  it.each(trees)("ends %s without KILL", async (_what, script) => {
    const command = await shell(script);
    const pid = Number((await lines(1))[0]);
    expect(isAlive(pid)).toBe(true);
    await command.stopTree({ graceMs: LONG_MS });
    expect(isAlive(pid)).toBe(false);
    expect(processesOfTest()).toEqual([]);
  });

  it("ends everybody also while new ones are being forked", async () => {
    const command = await shell(
      "i=0; while [ $i -lt 300 ]; do setsid sleep 600 & i=$((i+1)); [ $i = 20 ] && echo ready; done; wait",
    );
    await lines(1);
    await command.stopTree({ graceMs: 0 });
    expect(processesOfTest()).toEqual([]);
  });

  it("may be asked for several times, and after the end", async () => {
    const command = await shell("exec sleep 600");
    await Promise.all([
      command.stopTree({ graceMs: LONG_MS }),
      command.stopTree({ graceMs: LONG_MS }),
    ]);
    await command.stopTree({ graceMs: LONG_MS });
    expect(await command.treeGone()).toBe(0);
  });
});

describe("when the command itself has ended", () => {
  it("what it left in the background is ended and counted, and its status is its own", async () => {
    const command = await shell("sleep 600 & setsid sleep 600 & exit 7", {
      leftover: { settleMs: 50, graceMs: LONG_MS },
    });
    expect(await command.exited).toEqual({ code: 7 });
    expect(await command.treeGone()).toBe(2);
    expect(processesOfTest()).toEqual([]);
  });

  it("what ignores TERM is killed after the grace", async () => {
    const command = await shell(`(trap '' TERM; echo ready; exec sleep 600) & wait $! & exit 0`, {
      leftover: { settleMs: 1_000, graceMs: 100 },
    });
    await lines(1);
    expect(await command.treeGone()).toBe(1);
    expect(processesOfTest()).toEqual([]);
  });

  it("what ends by itself soon is left alone", async () => {
    const command = await shell("(sleep 0.2; echo late) & exit 0", {
      leftover: { settleMs: LONG_MS, graceMs: 0 },
    });
    expect(await command.treeGone()).toBe(0);
    expect(await lines(1)).toEqual(["late"]);
  });

  it("stopping hurries the settling and the grace of what is left", async () => {
    const command = await shell("sleep 600 & exit 0", {
      leftover: { settleMs: LONG_MS, graceMs: LONG_MS },
    });
    await command.exited;
    await command.stopTree({ graceMs: 0 });
    expect(processesOfTest()).toEqual([]);
  });
});

describe("a signal", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)(
    "%s is passed on to the command and its children, who decide what to do",
    async (signal) => {
      const name = signal.slice(3);
      const child = `trap "echo child; exit 0" ${name}; echo ready; ${WAIT_FOREVER}`;
      const command = await shell(`trap 'echo leader' ${name}; sh -c '${child}'; exit 7`);
      await lines(1);
      command.signal(signal);
      expect(await command.exited).toEqual({ code: 7 });
      expect(await lines(3)).toEqual(["ready", "child", "leader"]);
      expect(await command.treeGone()).toBe(0);
    },
  );

  it("after the end does nothing", async () => {
    const command = await shell("exit 0");
    await command.exited;
    command.signal("SIGTERM");
    await command.treeGone();
    command.signal("SIGTERM");
    expect(await command.exited).toEqual({ code: 0 });
  });
});

describe("many commands", () => {
  it("add one exit listener to our process while they run, and none afterwards", async () => {
    const before = process.listenerCount("exit");
    const commands = await Promise.all(Array.from({ length: 12 }, () => shell("exec sleep 600")));
    expect(process.listenerCount("exit")).toBe(before + 1);
    await Promise.all(commands.map((command) => command.stopTree({ graceMs: LONG_MS })));
    expect(process.listenerCount("exit")).toBe(before);
  });
});
