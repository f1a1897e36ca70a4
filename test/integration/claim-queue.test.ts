/**
 * Goal: who waits in the queue knows where it stands, leaves no trace, and gets through what happens to sessions and
 * connections meanwhile. Method: a server of our own, behind a proxy that stalls, cuts and counts.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { JobIdError, OptionError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { compareTokens } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimOptions, claim, tryClaim } from "../../recipes/claim.js";
import { contenders } from "../../recipes/contenders.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { fourLetterWord } from "../support/four-letter-word.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 4_000;
const NEVER_MS = 86_400_000;
const WAIT = { timeout: 20_000, interval: 10 };

let server: ZooKeeperServer;
let proxy: ZooKeeperProxy;
let direct: ZooKeeper;
let through: ZooKeeper;
let session: Session;
let job: string;

beforeAll(async () => {
  // of its own: its watches are counted, and empty claim paths stay until a test wants them gone
  server = await startZooKeeper({ zookeeper: { containerCheckIntervalMs: NEVER_MS } });
});
afterAll(() => server?.stop());

beforeEach(async () => {
  job = `job-${randomUUID()}`;
  proxy = await ZooKeeperProxy.start(server.port);
  direct = new ZooKeeper({ connect: server.connect, sessionTimeoutMs: SESSION_MS });
  through = new ZooKeeper({ connect: proxy.connect, sessionTimeoutMs: SESSION_MS });
  session = await sessionOf(direct);
});
afterEach(async () => {
  // The proxy goes first: closing a session blocks this thread until the server's answer, which the proxy would carry.
  await proxy.close();
  await Promise.all([direct.close(), through.close()]);
});

const sessionOf = (zookeeper: ZooKeeper) => zookeeper.session(Deadline.after(10_000, systemClock));

const names = () => childrenOf(session, claimPath(job));

async function granted(options: Partial<ClaimOptions> = {}): Promise<Claim> {
  const answer = await claim({ zookeeper: direct, job, waitMs: 60_000, ...options });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

/** So many waiters, queued one after the other; each releases its claim at once and gives its sequence. */
async function queued(count: number, zookeeper: ZooKeeper): Promise<Promise<number>[]> {
  const waiting: Promise<number>[] = [];
  const before = (await names()).length;
  for (let index = 1; index <= count; index += 1) {
    waiting.push(
      granted({ zookeeper }).then(async (held) => {
        await held.release();
        return held.token.sequence;
      }),
    );
    await vi.waitFor(async () => expect(await names()).toHaveLength(before + index), WAIT);
  }
  return waiting;
}

/** How many watches the server keeps. */
async function watchCount(): Promise<number> {
  const answer = await fourLetterWord(server.connect, "wchs");
  return Number(/^Total watches:(\d+)$/m.exec(answer)?.[1]);
}

describe("who waits in the queue", () => {
  it("is told its position when it is known, and each time that it changes", async () => {
    const held = await granted();
    const [middle] = await queued(1, direct);
    const positions: object[] = [];
    const last = granted({ onPosition: (position) => positions.push(position) });
    const holder = held.path.slice(held.path.lastIndexOf("/") + 1);
    await vi.waitFor(() => expect(positions).toEqual([{ ahead: 2, holder }]), WAIT);
    const name = (await names()).find((each) => each.endsWith("1")) ?? "none";
    await session.delete(`${claimPath(job)}/${name}`);
    await vi.waitFor(() => expect(positions).toContainEqual({ ahead: 1, holder }), WAIT);
    expect(positions).toHaveLength(2);
    await held.release();
    await (await last).release();
    await middle;
  });

  it("keeps no more watches than one for itself and one for the holder, however often it comes back", async () => {
    const before = await watchCount();
    const held = await granted();
    for (let round = 0; round < 40; round += 1) {
      const answer = await claim({ zookeeper: through, job, waitMs: 20 });
      expect(answer.outcome).toBe("busy");
      expect((await watchCount()) - before).toBeLessThanOrEqual(2);
    }
    expect(proxy.requests.filter((request) => request === "read").length).toBeGreaterThan(0);
    expect(await names()).toHaveLength(1);
    await held.release();
    await vi.waitFor(async () => expect(await watchCount()).toBeLessThanOrEqual(before), WAIT);
  });

  it("is granted when its predecessor leaves between the listing and the watch", async () => {
    const held = await granted();
    await sessionOf(through);
    proxy.stall("replies");
    const waiting = granted({ zookeeper: through });
    await vi.waitFor(() => expect(proxy.requests).toContain("list"), WAIT);
    await vi.waitFor(async () => expect(await names()).toHaveLength(2), WAIT);
    await held.release();
    proxy.heal(); // its listing shows the holder, which is gone
    const next = await waiting;
    expect(next.token.sequence).toBe(held.token.sequence + 1);
    await next.release();
  });

  it("enters anew once, and with a new number, when its session expired while it waited", async () => {
    const held = await granted();
    const waiting = await queued(6, through);
    proxy.stall();
    await vi.waitFor(async () => expect(await names()).toHaveLength(1), WAIT);
    proxy.heal();
    await vi.waitFor(async () => expect(await names()).toHaveLength(7), WAIT);
    await held.release();
    const sequences = await Promise.all(waiting);
    // 0 is the holder's, 1 to 6 went with the session: one more for each waiter, and nobody came back with an old one
    expect([...sequences].sort((a, b) => a - b)).toEqual([7, 8, 9, 10, 11, 12]);
  });

  it("waits through an outage longer than a connect attempt, and is granted afterwards", async () => {
    const impatient = new ZooKeeper({
      connect: proxy.connect,
      sessionTimeoutMs: SESSION_MS,
      connectTimeoutMs: 500,
    });
    try {
      const held = await granted();
      const waiting = granted({ zookeeper: impatient });
      await vi.waitFor(async () => expect(await names()).toHaveLength(2), WAIT);
      proxy.stall();
      await vi.waitFor(async () => expect(await names()).toHaveLength(1), WAIT);
      const late = impatient.session(Deadline.after(10_000, systemClock));
      await expect(late).rejects.toBeInstanceOf(ZooKeeperUnreachableError);
      proxy.heal();
      await vi.waitFor(async () => expect(await names()).toHaveLength(2), WAIT);
      await held.release();
      const next = await waiting;
      expect(next.token.sequence).toBe(2);
      await next.release();
    } finally {
      proxy.cut();
      await impatient.close();
    }
  });

  it("that comes during a reconnect is granted once, and keeps what it got", async () => {
    const suspended = await sessionOf(through);
    proxy.stall();
    proxy.cut();
    await vi.waitFor(() => expect(suspended.state).toBe("SUSPENDED"), WAIT);
    let grants = 0;
    const claiming = granted({ zookeeper: through }).finally(() => {
      grants += 1;
    });
    proxy.heal();
    proxy.cut(); // once more, while it is on its way
    const held = await claiming;
    const asked = proxy.requests.length;
    await vi.waitFor(() => expect(proxy.requests.slice(asked)).toContain("sync"), WAIT);
    expect([grants, held.signal.aborted]).toEqual([1, false]);
    expect(await names()).toHaveLength(1);
    await held.release();
  });
});

describe("a holder", () => {
  it("is warned that its time runs out before it loses the claim", async () => {
    const held = await granted({ zookeeper: through });
    const told: string[] = [];
    held.onRunningOut(() => told.push("runs out"));
    held.onRunningOut(() => told.push("nearly over"), { beforeMs: 200 });
    held.signal.addEventListener("abort", () => told.push("lost"));
    proxy.stall();
    await vi.waitFor(() => expect(told).toContain("lost"), WAIT);
    expect(told).toEqual(["runs out", "nearly over", "lost"]);
    proxy.heal();
    await held.release();
  });

  it("hears nothing of losses or of time running out in hundreds of quick claims", async () => {
    const told: string[] = [];
    const work = async () => {
      // a session so long that a slow machine is no reason for a warning
      const zookeeper = new ZooKeeper({ connect: server.connect, sessionTimeoutMs: 40_000 });
      for (let round = 0; round < 150; round += 1) {
        const held = await granted({ zookeeper });
        held.signal.addEventListener("abort", () => told.push("lost"));
        held.onRunningOut(() => told.push("runs out"));
        expect(held.remainingMs()).toBeGreaterThan(0);
        expect(await held.release()).toBe("released");
      }
      await (await sessionOf(zookeeper)).sync("/"); // what was on its way has arrived
      await zookeeper.close();
    };
    await Promise.all([work(), work()]);
    expect(told).toEqual([]);
  });

  it("whose release was cut off goes on with it in the background, so that the next one is granted", async () => {
    const held = await granted({ zookeeper: through });
    const waiting = granted();
    await vi.waitFor(async () => expect(await names()).toHaveLength(2), WAIT);
    proxy.stall("requests");
    await expect(held.release({ timeoutMs: 50 })).resolves.toBe("pending");
    expect(await names()).toHaveLength(2);
    proxy.cut();
    proxy.heal();
    const next = await waiting;
    expect(next.token.sequence).toBe(held.token.sequence + 1);
    // the session lives: it was the delete that handed the job on
    expect((await sessionOf(through)).state).toBe("CONNECTED");
    await next.release();
  });

  it("that is long gone takes nothing from a later holder of the same number by its release", async () => {
    const held = await granted({ zookeeper: through });
    proxy.stall();
    await vi.waitFor(async () => expect(await names()).toEqual([]), WAIT);
    await session.delete(claimPath(job));
    const next = await granted();
    expect(next.token.sequence).toBe(held.token.sequence);
    expect(compareTokens(next.token, held.token)).toBeGreaterThan(0);
    proxy.heal();
    await expect(held.release()).resolves.toBe("lost");
    await (await sessionOf(through)).sync("/");
    expect(await names()).toHaveLength(1);
    expect(next.signal.aborted).toBe(false);
    await next.release();
  });
});

describe("tryClaim", () => {
  it("is granted when nobody holds the job, and busy otherwise, without waiting", async () => {
    const first = await tryClaim({ zookeeper: direct, job });
    expect(first.outcome).toBe("granted");
    const onPosition = () => expect.unreachable("it does not wait");
    await expect(tryClaim({ zookeeper: direct, job, onPosition })).resolves.toMatchObject({
      outcome: "busy",
      ahead: 1,
    });
    if (first.outcome === "granted") await first.claim.release();
    expect(await names()).toEqual([]);
  });
});

describe("contenders", () => {
  it("says who holds and who waits, in the order of the queue, with strangers' children", async () => {
    const held = await granted({ holder: "first" });
    const waiting = granted({ holder: "second", zookeeper: through });
    await vi.waitFor(async () => expect(await names()).toHaveLength(2), WAIT);
    await session.create(`${claimPath(job)}/config`, "", "persistent");
    const seen = await contenders({ zookeeper: direct, job });
    expect(seen).toMatchObject({
      path: claimPath(job),
      contenders: [
        { sequence: 0, holder: "first", host: hostname(), pid: process.pid, session: session.id },
        { sequence: 1, holder: "second", session: (await sessionOf(through)).id },
      ],
      foreign: ["config"],
    });
    expect(Math.abs(Date.now() - (seen.contenders[0]?.sinceMs ?? 0))).toBeLessThan(60_000);
    await held.release();
    await (await waiting).release();
  });

  it("finds nobody where there is no path, and reads a lock path of the user's as well", async () => {
    await expect(contenders({ zookeeper: direct, job })).resolves.toMatchObject({ contenders: [] });
    const lockPath = `/locks-${job}`;
    const held = await granted({ lockPath });
    const seen = await contenders({ zookeeper: direct, lockPath });
    expect(seen.contenders.map(({ name }) => `${lockPath}/${name}`)).toEqual([held.path]);
    await held.release();
  });

  it("asks again when its connection breaks, and asks the leader first", async () => {
    const held = await granted();
    await sessionOf(through);
    const dropped = proxy.dropReplyOf("list");
    const looking = contenders({ zookeeper: through, job });
    await dropped;
    expect((await looking).contenders).toHaveLength(1);
    expect(proxy.requests.filter((request) => !/setWatches/.test(request)).slice(-5)).toEqual([
      "sync",
      "list",
      "sync",
      "list",
      "read",
    ]);
    await held.release();
  });

  it("ends by its deadline or its signal when nobody answers", async () => {
    await sessionOf(through);
    proxy.stall();
    const late = contenders({ zookeeper: through, job, answerMs: 50 });
    await expect(late).rejects.toBeInstanceOf(ZooKeeperUnreachableError);
    const controller = new AbortController();
    const cancelled = contenders({ zookeeper: through, job, signal: controller.signal });
    controller.abort(new Error("changed my mind"));
    await expect(cancelled).rejects.toThrow("changed my mind");
  });

  it("refuses a job id or a path that cannot be", async () => {
    const empty = contenders({ zookeeper: direct, job: "" });
    await expect(empty).rejects.toBeInstanceOf(JobIdError);
    const relative = contenders({ zookeeper: direct, lockPath: "relative" });
    await expect(relative).rejects.toBeInstanceOf(OptionError);
  });
});
