/** Whatever ends the process that started servers, the servers and their folders go too. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isAlive } from "../support/alive.js";

const BUILT = new URL("../../dist/recipes/servers/start-servers.js", import.meta.url);

const STARTER = `
  import { startServers } from ${JSON.stringify(BUILT)};
  process.on("message", () => {});
  process.on("SIGUSR2", () => process.exit(3));
  process.on("SIGUSR1", () => { throw new Error("nobody catches this"); });
  const servers = await startServers({ source: "programs" });
  process.stdout.write(JSON.stringify([servers.zookeeper.pid, servers.redis.pid]));
`;

/** A process that starts both servers and then waits. */
async function starter(): Promise<{ child: ChildProcess; pids: number[]; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
  const child = spawn(process.execPath, ["--input-type=module", "--eval", STARTER], {
    // A group of its own, as a shell gives to a command.
    detached: true,
    stdio: ["ignore", "pipe", "ignore", "ipc"],
    env: { ...process.env, TMPDIR: folder },
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  const [text] = (await Promise.race([
    once(child.stdout as NodeJS.ReadableStream, "data"),
    once(child, "exit").then(() => Promise.reject(new Error("the starter has ended"))),
  ])) as [Buffer];
  return { child, pids: JSON.parse(String(text)), folder };
}

async function expectAllGone(pids: number[], folder: string): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(pids.filter(isAlive)).toEqual([]);
      expect(await readdir(folder)).toEqual([]);
    },
    { timeout: 15_000, interval: 50 },
  );
}

describe("when the process that started them ends, no server and no folder is left", () => {
  it.each([
    ["SIGKILL", "nothing of ours can run any more"],
    ["SIGTERM", "an ordinary end"],
    ["SIGHUP", "the terminal is closed"],
    ["SIGUSR2", "it calls process.exit"],
    ["SIGUSR1", "an exception that nobody catches"],
  ] as const)("by %s (%s)", async (signal, _what) => {
    const { child, pids, folder } = await starter();
    expect(pids.every(isAlive)).toBe(true);
    expect(await readdir(folder)).toHaveLength(2);
    child.kill(signal);
    await expectAllGone(pids, folder);
  });

  it("by Ctrl-C, which goes to the whole group of processes", async () => {
    const { child, pids, folder } = await starter();
    process.kill(-(child.pid as number), "SIGINT");
    await expectAllGone(pids, folder);
  });

  it.skipIf(process.platform !== "linux")("but not by a Ctrl-C that it handles", async () => {
    const { child, pids } = await starter();
    // The terminal signals the group of our process; the servers are in another one.
    const groups = await Promise.all(pids.map(processGroup));
    expect(groups).not.toContain(child.pid);
  });

  it.skipIf(process.platform !== "linux")(
    "also when a guard was killed before the stop",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
      vi.stubEnv("TMPDIR", folder);
      onTestFinished(async () => {
        vi.unstubAllEnvs();
        await rm(folder, { recursive: true, force: true });
      });
      const { startRedis } = await import("../../recipes/servers/start-servers.js");
      const redis = await startRedis({ source: "programs" });
      const { pid = 0 } = redis;
      process.kill(await parentOf(pid), "SIGKILL");
      await redis.stop();
      await expectAllGone([pid], folder);
    },
  );
});

/** Fields 4 and 5 of /proc/PID/stat; the name before them has no spaces here. */
async function statField(pid: number, field: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/stat`, "utf8")).split(" ")[field - 1]);
}

const parentOf = (pid: number) => statField(pid, 4);
const processGroup = (pid: number) => statField(pid, 5);
