/**
 * Goal: a server that is stopped, killed or away for longer than a session lasts, and a holder that is killed, let the
 * job go on with a higher token: never two at once, and never nobody.
 * Method: a server of our own, processes, and a record of what happened in which order.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { compareTokens } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, claim } from "../../recipes/claim.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { isAlive } from "../support/alive.js";
import { startCli } from "../support/cli.js";
import { HolderProcess } from "../support/holder-process.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { SteadyAddress } from "../support/steady-address.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 2_000;
/** The longest that the server's tick allows: a restart of the server, also of a container, is shorter. */
const LONG_SESSION_MS = 20_000;
const BOUND_MS = 60_000;
const WAIT = { timeout: BOUND_MS, interval: 10 };

let server: ZooKeeperServer;
let address: SteadyAddress;
let job: string;
let opened: ZooKeeper[];

beforeAll(async () => {
  const zookeeper = { tickTimeMs: 1_000, containerCheckIntervalMs: 86_400_000 };
  server = await startZooKeeper({ zookeeper });
  address = await SteadyAddress.of(server);
});
afterAll(async () => {
  await address?.close();
  await server?.stop();
});

beforeEach(() => {
  job = `job-${randomUUID()}`;
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
});

function open({ sessionTimeoutMs = SESSION_MS, connect = address.connect } = {}): ZooKeeper {
  const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs, connectTimeoutMs: BOUND_MS });
  opened.push(zookeeper);
  return zookeeper;
}

async function granted(zookeeper: ZooKeeper, holder?: string): Promise<Claim> {
  const options = { zookeeper, job, waitMs: BOUND_MS, answerMs: BOUND_MS };
  const answer = await claim(holder === undefined ? options : { ...options, holder });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

async function contenders(zookeeper: ZooKeeper): Promise<string[]> {
  const session = await zookeeper.session(Deadline.after(BOUND_MS, systemClock));
  return childrenOf(session, claimPath(job));
}

/** Waits until more than so many session timeouts have gone by: no test can hurry a server's clock. */
async function sessionsPass(times: number): Promise<void> {
  const deadline = Deadline.after(times * SESSION_MS, systemClock);
  await vi.waitFor(() => expect(deadline.passed).toBe(true), WAIT);
}

/** A holder that gives the claim up when it is lost, and waiters that hold it for a moment; all noted in order. */
async function queueUp(sessionTimeoutMs: number, waiters: number) {
  const events: string[] = [];
  const held = await granted(open({ sessionTimeoutMs }));
  let last = held.token;
  held.signal.addEventListener("abort", () => {
    events.push("lost");
    void held.release();
  });
  const asking = open({ sessionTimeoutMs });
  const waiting = Array.from({ length: waiters }, async () => {
    const next = await granted(open({ sessionTimeoutMs }));
    events.push(compareTokens(next.token, last) > 0 ? "granted" : `granted ${next.token.text}`);
    last = next.token;
    await next.release();
  });
  await vi.waitFor(async () => expect(await contenders(asking)).toHaveLength(waiters + 1), WAIT);
  return { events, held, asking, done: Promise.all(waiting) };
}

describe("a server that is stopped for longer than a session lasts", () => {
  it("takes the claim from its holder before a waiter gets it, with a higher token and nothing left over", async () => {
    const { events, asking, done } = await queueUp(SESSION_MS, 1);
    await server.pause();
    try {
      await vi.waitFor(() => expect(events).toEqual(["lost"]), WAIT);
      await sessionsPass(1);
    } finally {
      await server.resume();
    }
    await done;
    expect(events).toEqual(["lost", "granted"]);
    await vi.waitFor(async () => expect(await contenders(asking)).toEqual([]), WAIT);
  });
});

describe("a server that is killed while a claim is held and three wait", () => {
  it("is back within the session: the claim stays, and then moves from one to the next", async () => {
    const { events, held, asking, done } = await queueUp(LONG_SESSION_MS, 3);
    await server.kill();
    await address.restart();
    await vi.waitFor(async () => expect(await contenders(asking)).toHaveLength(4), WAIT);
    expect(events).toEqual([]);
    await expect(held.release()).resolves.toBe("released");
    await done;
    expect(events).toEqual(["granted", "granted", "granted"]);
    expect(await contenders(asking)).toEqual([]);
  });

  it("is away for three session timeouts: the claim is lost, and then moves from one to the next", async () => {
    const { events, asking, done } = await queueUp(SESSION_MS, 3);
    await server.kill();
    await sessionsPass(3);
    expect(events).toEqual(["lost"]);
    await address.restart();
    await done;
    expect(events).toEqual(["lost", "granted", "granted", "granted"]);
    await vi.waitFor(async () => expect(await contenders(asking)).toEqual([]), WAIT);
  });
});

describe("a holder that is killed and started again at once under the same name", () => {
  it("waits for its old znode to go, without asking again and again, and gets a higher token", async () => {
    const holder = "worker-1";
    const sessionTimeoutMs = 4_000;
    const old = await HolderProcess.start({
      connect: address.connect,
      sessionTimeoutMs,
      job,
      holder,
    });
    await old.kill();
    const proxy = await ZooKeeperProxy.start(server.port);
    const zookeeper = open({ connect: proxy.connect, sessionTimeoutMs });
    const again = await granted(zookeeper, holder);
    expect(again.token.text > old.token).toBe(true);
    expect(again.token.sequence).toBe(Number(old.token.slice(-10)) + 1);
    // one contender, one watch, one look when it fires; and what a session asks to open and to hold
    const asked = proxy.requests.filter((request) => request !== "sync");
    expect(asked.length, asked.join()).toBeLessThanOrEqual(8);
    await again.release();
    await proxy.close();
  });
});

describe("a server that is frozen while sessions are closed", () => {
  it("does not hold up the end of several sessions in one process", async () => {
    const zookeepers = Array.from({ length: 4 }, () => open({ sessionTimeoutMs: LONG_SESSION_MS }));
    await Promise.all(zookeepers.map((each) => contenders(each)));
    await server.pause();
    try {
      const deadline = Deadline.after(10_000, systemClock);
      await Promise.all(zookeepers.map((each) => each.close()));
      expect(deadline.passed).toBe(false);
    } finally {
      await server.resume();
    }
  });

  it("does not keep run from ending its command at once and itself soon after, when it is told to end", async () => {
    const command = ["sh", "-c", "echo pid $$ ready; exec sleep 60"];
    const run = startCli(["run", job, "--session-timeout", "4s", "--", ...command], {
      env: { ZOOKEEPER_CONNECT: address.connect },
    });
    await run.until("ready");
    const pid = Number(/pid (\d+)/.exec(run.stdout)?.[1]);
    await server.pause();
    try {
      const deadline = Deadline.after(20_000, systemClock);
      run.signal("SIGTERM");
      await vi.waitFor(() => expect(isAlive(pid)).toBe(false), WAIT);
      const { status } = await run.ended;
      expect(status).toBe(143);
      expect(deadline.passed).toBe(false);
    } finally {
      await server.resume();
    }
  });
});
