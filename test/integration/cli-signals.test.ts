/**
 * Goal: signals, lost claims and dead wrappers end a command as the contract says. Method: real processes, stopped,
 * killed and cut off; what is asserted is order and outcome, never speed.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { isAlive } from "../support/alive.js";
import { type CliProcess, cli, startCli } from "../support/cli.js";
import { contendersOf, withSession } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const WAIT = { timeout: 30_000, interval: 20 };
const SHORT = ["--session-timeout", "4s"];

let job: string;
let key: string;
let folder: string;

beforeEach(async () => {
  const id = randomUUID();
  job = `job-${id}`;
  key = `key-${id}`;
  folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A command that says who it is, and then lasts. */
const LASTING = "echo pid $$; exec sleep 600";

async function pidOf(process: CliProcess): Promise<number> {
  await process.until("pid ");
  return Number(/pid (\d+)/.exec(process.stdout)?.[1]);
}

describe("a signal to run", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)(
    "is passed on to the command, and the claim is released when that has ended: %s",
    async (signal) => {
      const name = signal.slice(3);
      const script = `trap 'echo got ${name}; exit 42' ${name}; echo ready; while :; do sleep 0.05; done`;
      const run = startCli(["run", job, "--", "bash", "-c", script]);
      await run.until("ready");
      run.signal(signal);
      const end = await run.ended;
      expect(end.stdout.toString()).toBe(`ready\ngot ${name}\n`);
      expect(end.status).toBe(42);
      expect(await contendersOf(job)).toEqual([]);
    },
  );

  it.each(["SIGINT", "SIGTERM"] as const)(
    "ends it with 128 and the number when the command dies of it: %s",
    async (signal) => {
      const run = startCli(["run", job, "--", "sh", "-c", LASTING]);
      const pid = await pidOf(run);
      run.signal(signal);
      expect((await run.ended).status).toBe(128 + constants.signals[signal]);
      expect(isAlive(pid)).toBe(false);
    },
  );

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "ends it at once while it waits for the claim, and its contender is gone: %s",
    async (signal) => {
      const holder = startCli(["run", job, "--", "sh", "-c", LASTING]);
      await pidOf(holder);
      const waiter = startCli(["run", job, "--wait", "10m", "--", "echo", "never"]);
      await vi.waitFor(async () => expect(await contendersOf(job)).toHaveLength(2), WAIT);
      waiter.signal(signal);
      const end = await waiter.ended;
      expect(end.status).toBe(128 + constants.signals[signal]);
      expect(end.stdout.toString()).toBe("");
      expect(await contendersOf(job)).toHaveLength(1);
    },
  );

  it("ends it at once while it connects to a server that never answers", async () => {
    const proxy = await ZooKeeperProxy.start(Number(inject("zookeeper").split(":")[1]));
    proxy.stall();
    const run = startCli(["run", job, "--connect-timeout", "10m", "--", "echo", "never"], {
      env: { ZOOKEEPER_CONNECT: proxy.connect },
    });
    await vi.waitFor(() => expect(proxy.connections).toBe(1), WAIT);
    run.signal("SIGINT");
    expect((await run.ended).status).toBe(130);
    await proxy.close();
  });
});

describe("a claim that is lost while the command runs", () => {
  const deleteContender = async () => {
    const [name] = await contendersOf(job);
    await withSession((session) => session.delete(`${claimPath(job)}/${name}`));
  };

  it("stops the command, commits nothing and ends with 76", async () => {
    const run = startCli(["run", job, "--key", key, "--", "sh", "-c", LASTING]);
    const pid = await pidOf(run);
    await deleteContender();
    const end = await run.ended;
    expect(end.status).toBe(76);
    expect(isAlive(pid)).toBe(false);
    expect((await cli(["get", key])).status).toBe(1);
  });

  it("stops the whole tree with TERM and then KILL, also what ignores TERM or has left the process group", async () => {
    const pids = join(folder, "pids");
    const stubborn = `trap '' TERM; echo $BASHPID >> ${pids}; while :; do sleep 0.05; done`;
    const script = `(${stubborn}) & setsid bash -c "${stubborn.replace("$BASHPID", "\\$BASHPID")}" & echo pid $$; wait`;
    const run = startCli(["run", job, "--", "bash", "-c", script]);
    await pidOf(run);
    await vi.waitFor(async () => {
      expect((await readFile(pids, "utf8")).trim().split("\n")).toHaveLength(2);
    }, WAIT);
    const members = (await readFile(pids, "utf8")).trim().split("\n").map(Number);
    expect(members.every(isAlive)).toBe(true);
    await deleteContender();
    expect((await run.ended).status).toBe(76);
    expect(members.filter(isAlive)).toEqual([]);
  });

  it("has ended the command before the server hands the job on, when ZooKeeper falls silent", async () => {
    const proxy = await ZooKeeperProxy.start(Number(inject("zookeeper").split(":")[1]));
    const first = startCli(["run", job, ...SHORT, "--", "bash", "-c", `trap '' TERM; ${LASTING}`], {
      env: { ZOOKEEPER_CONNECT: proxy.connect },
    });
    const pid = await pidOf(first);
    // the second command looks whether the first one is still there, in the moment in which it begins
    const look = `kill -0 ${pid} 2>/dev/null && echo overlap || echo alone`;
    const second = startCli(["run", job, ...SHORT, "--wait", "60s", "--", "sh", "-c", look]);
    await vi.waitFor(async () => expect(await contendersOf(job)).toHaveLength(2), WAIT);
    proxy.stall();
    const end = await second.ended;
    expect(end.stdout.toString()).toBe("alone\n");
    expect((await first.ended).status).toBe(76);
    await proxy.close();
  });
});

describe("a process that runs a command under a claim", () => {
  it("hands the job on when it is killed, within the session timeout and two ticks, under a new token", async () => {
    const first = startCli(["run", job, ...SHORT, "--", "sh", "-c", LASTING]);
    const pid = await pidOf(first);
    const [old] = await contendersOf(job);
    first.signal("SIGKILL");
    const killedAtMs = performance.now();
    const next = await cli([
      "run",
      job,
      ...SHORT,
      "--wait",
      "60s",
      "--",
      "sh",
      "-c",
      "echo $FENCEKEEPER_SEQUENCE",
    ]);
    const passedMs = performance.now() - killedAtMs;
    expect(next.status, next.stderr).toBe(0);
    expect(Number(next.stdout.toString())).toBeGreaterThan(Number(old?.slice(-10)));
    // 4 s of session and two ticks of 2 s; what a busy machine needs to start a process comes on top
    expect(passedMs).toBeLessThan(4_000 + 2 * 2_000 + 10_000);
    process.kill(pid, "SIGKILL"); // what a killed wrapper leaves behind; the fence keeps its result out
  });

  it("is refused when it was stopped past its session and wakes after its successor has committed", async () => {
    const script = `echo pid $$; until [ -e ${folder}/finish ]; do sleep 0.05; done; echo late`;
    const first = startCli(["run", job, ...SHORT, "--key", key, "--", "sh", "-c", script]);
    const pid = await pidOf(first);
    first.signal("SIGSTOP");
    process.kill(-pid, "SIGSTOP");
    const second = await cli([
      "run",
      job,
      ...SHORT,
      "--key",
      key,
      "--wait",
      "60s",
      "--",
      "echo",
      "newer",
    ]);
    expect(second.status, second.stderr).toBe(0);
    process.kill(-pid, "SIGCONT");
    first.signal("SIGCONT");
    const end = await first.ended;
    expect([73, 76]).toContain(end.status);
    expect((await cli(["get", key])).stdout.toString()).toBe("newer\n");
    expect(isAlive(pid)).toBe(false);
  });

  it("is refused by the fence itself when it commits late by hand, past every check", async () => {
    const tokenFile = join(folder, "token");
    await cli(["run", job, "--", "sh", "-c", `printf $FENCEKEEPER_TOKEN > ${tokenFile}`]);
    await cli(["run", job, "--key", key, "--", "echo", "newer"]);
    const token = await readFile(tokenFile, "utf8");
    const late = await cli(["commit", "--key", key, "--job", job, "--token", token], {
      input: "late",
    });
    expect(late.status).toBe(73);
    expect(late.stderr).toContain("nothing was overwritten");
    const sink = openRedisSink({ url: inject("redis") });
    const { value, fence } = await sink.readResult(key);
    await sink.close();
    expect(value?.toString()).toBe("newer\n");
    expect(fence).toMatchObject({ staleCount: 1, lastStale: { tokenText: token } });
  });
});
