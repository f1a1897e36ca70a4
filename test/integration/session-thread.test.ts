/**
 * Goal: work that keeps the main thread busy does not cost the session, and a stopped process still loses it. Method: a
 * worker as a process of its own, with real servers, and another worker that waits for its job.
 */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { parseToken } from "../../lib/token.js";
import { type Claim, claim } from "../../recipes/claim.js";
import { fencedRun, openRedisSink, type Sink, ZooKeeper } from "../../recipes/index.js";
import { Program } from "../support/program.js";

const TIMEOUT_MS = 4_000;
const THREE_TIMEOUTS_MS = 3 * TIMEOUT_MS;

let job: string;
let zookeeper: ZooKeeper;
let sink: Sink;

beforeEach(() => {
  job = `job-${randomUUID()}`;
  zookeeper = new ZooKeeper({ connect: inject("zookeeper"), sessionTimeoutMs: TIMEOUT_MS });
  sink = openRedisSink({ url: inject("redis") });
});
afterEach(() => Promise.all([zookeeper.close(), sink.close()]));

/** A worker that is granted the job, says so, works as it is told, commits, and tries to commit once more. */
const WORKER = `
const [job, busyMs, stuckMs] = args;
const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs: ${TIMEOUT_MS}, stuckMs: Number(stuckMs) });
const sink = openRedisSink({ url: redisUrl });
let held;
const answer = await fencedRun({ zookeeper, job, result: { sink, key: job } }, async (claim) => {
  held = claim;
  tell({ granted: claim.token.text });
  if (busyMs === "0") await new Promise((resolve) => process.stdin.once("data", resolve));
  const until = performance.now() + Number(busyMs);
  while (performance.now() < until);
  return "of the first";
});
tell({ outcome: answer.outcome });
const late = await sink.commitResult({ key: job, job, token: held.token, value: "late" });
tell({ late: late.outcome });
await Promise.all([zookeeper.close(), sink.close()]);
process.stdin.destroy();
`;

function worker({ busyMs = 0, stuckMs = 180_000 }): Program {
  return new Program(WORKER, job, String(busyMs), String(stuckMs));
}

const commitNewer = () =>
  fencedRun(
    { zookeeper, job, waitMs: 60_000, result: { sink, key: job } },
    async () => "of the second",
  );

describe("a handler that keeps its thread busy for three session timeouts", () => {
  it("keeps its claim and commits, and the one who waits comes after it", async () => {
    const first = worker({ busyMs: THREE_TIMEOUTS_MS });
    await first.toldLines(1);
    const second = await commitNewer();
    expect(second.outcome).toBe("committed");
    const [granted, ended] = (await first.toldLines(2)) as [{ granted: string }, object];
    expect(ended).toEqual({ outcome: "committed" });
    expect(second).toMatchObject({ token: { sequence: parseToken(granted.granted).sequence + 1 } });
    expect(await first.ended).toEqual({ status: 0, signal: null });
  });

  it("loses its claim where it may be busy for less than that", async () => {
    const first = worker({ busyMs: THREE_TIMEOUTS_MS, stuckMs: 1_000 });
    await first.toldLines(1);
    expect((await commitNewer()).outcome).toBe("committed");
    expect((await first.toldLines(3)).slice(1)).toEqual([{ outcome: "lost" }, { late: "stale" }]);
  });
});

describe("a process that is stopped for three session timeouts", () => {
  it("loses its claim, and its late write is refused", async () => {
    const first = worker({});
    await first.toldLines(1);
    first.child.kill("SIGSTOP");
    const stoppedAtMs = performance.now();
    expect((await commitNewer()).outcome).toBe("committed");
    await expect
      .poll(() => performance.now() - stoppedAtMs, { timeout: 60_000, interval: 100 })
      .toBeGreaterThan(THREE_TIMEOUTS_MS);
    first.child.kill("SIGCONT");
    first.child.stdin?.write("go on\n");
    expect((await first.toldLines(3)).slice(1)).toEqual([{ outcome: "lost" }, { late: "stale" }]);
    expect((await sink.readResult(job)).value?.toString()).toBe("of the second");
  });
});

describe("a process with an open session", () => {
  it.each([
    ["process.exit(3)", 3],
    ["throw new Error('a fault of the user')", 1],
    ["await new Promise(() => {})", 13],
  ])("ends as it would without one: %s", async (text, status) => {
    const program = new Program(
      `const zookeeper = new ZooKeeper({ connect });
       await claim({ zookeeper, job: args[0] });
       process.stdin.destroy();
       ${text === "await new Promise(() => {})" ? "await zookeeper.close();" : ""}
       ${text};`,
      job,
    );
    expect(await program.ended).toEqual({ status, signal: null });
  });

  it("releases its claims by its end, so that the next one need not wait for the session to expire", async () => {
    const program = new Program(
      `const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs: 30_000 });
       await claim({ zookeeper, job: args[0] });
       process.exit(0);`,
      job,
    );
    await program.ended;
    const answer = await claim({ zookeeper, job, waitMs: 10_000 });
    expect(answer.outcome).toBe("granted");
    await (answer as { claim: Claim }).claim.release();
  });
});

describe("the npm package `zookeeper`, which works in one thread of a process", () => {
  it("is not loaded a second time when the main thread has it, and the remedy is named", async () => {
    const program = new Program(
      `await import("zookeeper");
       const own = new ZooKeeper({ connect });
       await claim({ zookeeper: own, job: args[0] }).catch(({ code, message }) => tell({ code, message }));
       const caller = new ZooKeeper({ connect, thread: "caller" });
       const { outcome } = await claim({ zookeeper: caller, job: args[0] });
       tell({ outcome });
       await caller.close();
       process.stdin.destroy();`,
      job,
    );
    const [refused, granted] = await program.toldLines(2);
    expect(refused).toMatchObject({
      code: "CONFIGURATION_INVALID",
      message: expect.stringContaining('thread: "caller"'),
    });
    expect(granted).toEqual({ outcome: "granted" });
    expect(await program.ended).toEqual({ status: 0, signal: null });
  });

  it("is not loaded on the main thread by us once the sessions have a thread", async () => {
    const program = new Program(
      `const own = new ZooKeeper({ connect });
       await claim({ zookeeper: own, job: args[0] });
       const caller = new ZooKeeper({ connect, thread: "caller" });
       await claim({ zookeeper: caller, job: args[0] }).catch(({ code }) => tell({ code }));
       await own.close();
       process.stdin.destroy();`,
      job,
    );
    expect(await program.toldLines(1)).toEqual([{ code: "CONFIGURATION_INVALID" }]);
    expect(await program.ended).toEqual({ status: 0, signal: null });
  });
});
