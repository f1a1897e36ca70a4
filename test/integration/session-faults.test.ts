/**
 * Goal: whatever a connection does (flaps, falls silent, is refused, is answered for another session), a session says
 * what is so, a claim stays where it is or is lost for good, and the process can claim again.
 * Method: a server of our own behind a proxy that understands frames.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { type ClaimLostError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { compareTokens } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { SessionSource } from "../../lib/zookeeper/session-port.js";
import { ZooKeeper, type ZooKeeperOptions } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import { freePort } from "../../recipes/servers/free-port.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { cli } from "../support/cli.js";
import { CountedSessions } from "../support/counted-sessions.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 4_000;
const WAIT = { timeout: 30_000, interval: 10 };

let server: ZooKeeperServer;
let proxy: ZooKeeperProxy;
let direct: ZooKeeper;
let through: ZooKeeper;
let job: string;
let opened: ZooKeeper[];

beforeAll(async () => {
  // the limits of its sessions follow from the tick: 4 and 40 seconds
  const tickTimeMs = 2_000;
  server = await startZooKeeper({
    zookeeper: { tickTimeMs, containerCheckIntervalMs: 86_400_000 },
  });
});
afterAll(() => server?.stop());

beforeEach(async () => {
  job = `job-${randomUUID()}`;
  opened = [];
  proxy = await ZooKeeperProxy.start(server.port);
  direct = open(server.connect);
  through = open(proxy.connect);
});
afterEach(async () => {
  // the proxy goes first: a session that is closed through it waits for what it keeps back
  await proxy.close();
  await Promise.all(opened.map((each) => each.close()));
});

function open(connect: string, options: Partial<ZooKeeperOptions> = {}): ZooKeeper {
  const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs: SESSION_MS, ...options });
  opened.push(zookeeper);
  return zookeeper;
}

const sessionOf = (source: SessionSource) => source.session(Deadline.after(30_000, systemClock));

async function granted(
  options: Partial<ClaimOptions> & { zookeeper: SessionSource },
): Promise<Claim> {
  const answer = await claim({ job, answerMs: 30_000, ...options });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

const contenders = async () => childrenOf(await sessionOf(direct), claimPath(job));
const count = (operation: string) => proxy.requests.filter((each) => each === operation).length;

describe("a session timeout that the server does not grant", () => {
  it.each([
    [500, 4_000],
    [120_000, 40_000],
  ])(
    "of %i ms is told as odd, and %i ms are what a claim counts with",
    async (asked, negotiated) => {
      const warnings: string[] = [];
      const warn = (line: string) => warnings.push(line);
      const zookeeper = open(server.connect, { sessionTimeoutMs: asked, warn });
      const held = await granted({ zookeeper });
      expect(held.negotiatedTimeoutMs).toBe(negotiated);
      expect(held.stopGraceMs).toBeLessThan(negotiated);
      expect(held.remainingMs()).toBeLessThan(negotiated - held.stopGraceMs);
      expect(held.remainingMs()).toBeGreaterThan(negotiated / 4);
      expect(warnings).toEqual([
        expect.stringContaining(`${negotiated} ms instead of ${asked} ms`),
      ]);
    },
  );

  it("is told by run, which goes on", async () => {
    const run = await cli(["run", job, "--session-timeout", "500ms", "--", "true"], {
      env: { ZOOKEEPER_CONNECT: server.connect },
    });
    expect(run.stderr).toContain("4000 ms instead of 500 ms");
    expect(run.status).toBe(0);
  });
});

describe("a connection that breaks fifty times", () => {
  it("leaves a holder and a waiter with one contender each, the same token, and no listener more", async () => {
    // the client pauses before it begins its list anew: a long list has it back at once
    const zookeeper = open(Array.from({ length: 60 }, () => proxy.connect).join(","));
    const source = new CountedSessions(zookeeper);
    const held = await granted({ zookeeper: source });
    const { text } = held.token;
    let answered = false;
    const waiting = granted({ zookeeper: source, waitMs: 120_000 }).finally(() => {
      answered = true;
    });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    const before = await contenders();
    const subscriptions: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const looks = { lists: count("list"), reads: count("read") };
      proxy.cut();
      // the waiter lists and reads again, and the holder reads
      await vi.waitFor(() => {
        expect(count("list")).toBeGreaterThan(looks.lists);
        expect(count("read")).toBeGreaterThan(looks.reads + 1);
      }, WAIT);
      subscriptions.push(source.subscriptions);
    }
    expect(answered).toBe(false);
    expect(await contenders()).toEqual(before);
    expect(held.signal.aborted).toBe(false);
    expect(held.token.text).toBe(text);
    expect(source.sessions).toBe(1);
    // a few come and go with each look; one that stayed each time would be fifty at the end
    expect(Math.max(...subscriptions)).toBeLessThan(10);
    await expect(held.release()).resolves.toBe("released");
    await (await waiting).release();
    expect(source.subscriptions).toBe(0);
    expect(await contenders()).toEqual([]);
  });
});

describe("a release that the network swallows", () => {
  it("happens as soon as the connection is back, within the same session", async () => {
    const held = await granted({ zookeeper: through });
    const { id } = await sessionOf(through);
    const waiting = granted({ zookeeper: direct, waitMs: 30_000 });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    proxy.stall();
    await expect(held.release({ timeoutMs: 50 })).resolves.toBe("pending");
    proxy.cut(); // and with it the delete, which the server has never seen
    proxy.heal();
    await (await waiting).release();
    // so it was the release that made way, and not the end of the session
    const session = await sessionOf(through);
    await session.sync("/");
    expect(session.id).toBe(id);
  });
});

describe("a server that cannot be reached", () => {
  it.each<[string, () => Promise<string>]>([
    ["that listens nowhere", async () => `127.0.0.1:${await freePort()}`],
    ["that the network refuses at once", async () => "255.255.255.255:2181"],
    ["whose name does not resolve", async () => "no-such-host.invalid:2181"],
    [
      "that takes connections and never answers",
      async () => {
        proxy.stall();
        return proxy.connect;
      },
    ],
  ])("fails a claim with its address and at little cost: one %s", async (_what, address) => {
    const connect = await address();
    const zookeeper = open(connect, { connectTimeoutMs: 1_500 });
    const cpu = process.cpuUsage();
    const error = await claim({ zookeeper, job }).catch((reason: unknown) => reason);
    const { user, system } = process.cpuUsage(cpu);
    expect(error).toBeInstanceOf(ZooKeeperUnreachableError);
    expect(String(error)).toContain(connect.split(":")[0]);
    // a loop that turns without end would have used all of the 1 500 ms
    expect((user + system) / 1_000).toBeLessThan(750);
  });
});

describe("a server that can be reached only later, or beside others that cannot", () => {
  it("is found, although nobody was behind its address at first", async () => {
    proxy.pointAt(await freePort());
    const granting = granted({ zookeeper: open(proxy.connect, { connectTimeoutMs: 30_000 }) });
    await vi.waitFor(() => expect(proxy.accepted).toBeGreaterThan(0), WAIT);
    proxy.pointAt(server.port);
    await expect((await granting).release()).resolves.toBe("released");
  });

  it("is found beside a name that does not resolve", async () => {
    const zookeeper = open(`no-such-host.invalid:2181,${server.connect}`);
    await expect((await granted({ zookeeper })).release()).resolves.toBe("released");
  });

  // The client begins anywhere in its list.
  it("is found beside an address that the network refuses at once, whichever is tried first", async () => {
    for (let round = 0; round < 8; round += 1) {
      const zookeeper = open(`255.255.255.255:2181,${server.connect}`);
      await expect((await granted({ zookeeper })).release()).resolves.toBe("released");
    }
  });
});

describe("a connection that falls silent in the middle of a session", () => {
  it("is no longer called connected, and is connected again after it heals", async () => {
    const session = await sessionOf(through);
    proxy.stall();
    await vi.waitFor(() => expect(session.state).not.toBe("CONNECTED"), WAIT);
    await expect(claim({ zookeeper: through, job, answerMs: 100 })).rejects.toBeInstanceOf(
      ZooKeeperUnreachableError,
    );
    proxy.heal();
    await (await granted({ zookeeper: through })).release();
    expect(await contenders()).toEqual([]);
  });
});

describe("a claim that was lost by its deadline, in a session that lives on", () => {
  it("makes way for the next contender, although its holder neither stops nor releases it", async () => {
    const held = await granted({ zookeeper: through });
    const session = await sessionOf(through);
    const waiting = granted({ zookeeper: direct, waitMs: 4 * SESSION_MS });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    proxy.stall();
    await vi.waitFor(() => expect(held.signal.aborted).toBe(true), WAIT);
    proxy.heal();
    const next = await waiting;
    expect(session.state).toBe("CONNECTED");
    expect(compareTokens(next.token, held.token)).toBeGreaterThan(0);
    await next.release();
  });
});

describe("a server that answers a reconnect with another session", () => {
  it("ends the claim of the old one, and the process claims again with a higher token", async () => {
    const held = await granted({ zookeeper: through });
    const old = await sessionOf(through);
    proxy.replaceNextSession();
    proxy.cut();
    await vi.waitFor(() => expect(held.signal.aborted).toBe(true), WAIT);
    expect((held.signal.reason as ClaimLostError).reason).toBe("expired");
    expect(old.state).toBe("LOST");
    await expect(held.release()).resolves.toBe("lost");
    const again = await granted({ zookeeper: through, waitMs: 30_000 });
    expect((await sessionOf(through)).id).not.toBe(old.id);
    expect(compareTokens(again.token, held.token)).toBeGreaterThan(0);
    await again.release();
  });
});
