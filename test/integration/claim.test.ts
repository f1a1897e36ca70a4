/**
 * Goal: the claim recipe does what its contract says on a real ZooKeeper server, also when replies are lost and
 * connections break. Method: a server of our own behind a proxy that understands frames.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { type ClaimLostError, OptionError } from "../../lib/errors.js";
import { compareTokens } from "../../lib/token.js";
import { claimPath, claimsPath } from "../../lib/zookeeper/paths.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { receivedPackets } from "../support/four-letter-word.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 4_000;
const NEVER_MS = 86_400_000;
const WAIT = { timeout: 20_000, interval: 10 };

let server: ZooKeeperServer;
let proxy: ZooKeeperProxy;
let direct: ZooKeeper;
let through: ZooKeeper;
let job: string;

beforeAll(async () => {
  // of its own: its packets are counted, and empty claim paths stay until a test wants them gone
  server = await startZooKeeper({ zookeeper: { containerCheckIntervalMs: NEVER_MS } });
});
afterAll(() => server?.stop());

beforeEach(async () => {
  job = `job-${randomUUID()}`;
  proxy = await ZooKeeperProxy.start(server.port);
  direct = new ZooKeeper({ connect: server.connect, sessionTimeoutMs: SESSION_MS });
  through = new ZooKeeper({ connect: proxy.connect, sessionTimeoutMs: SESSION_MS });
});
afterEach(async () => {
  // The proxy goes first: closing a session blocks this thread until the server's answer, which the proxy would carry.
  await proxy.close();
  await Promise.all([direct.close(), through.close()]);
});

const sessionOf = (zookeeper: ZooKeeper) => zookeeper.session(Deadline.after(10_000, systemClock));

async function contenders(path = claimPath(job)): Promise<string[]> {
  return childrenOf(await sessionOf(direct), path);
}

async function granted(options: Partial<ClaimOptions> & { zookeeper: ZooKeeper }): Promise<Claim> {
  const answer = await claim({ job, ...options });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

/** Makes the claim path, and opens the session, so that a test counts only what it is about. */
async function warm(zookeeper: ZooKeeper): Promise<void> {
  await (await granted({ zookeeper })).release();
}

const lossOf = (held: Claim): string | undefined =>
  (held.signal.reason as ClaimLostError | undefined)?.reason;

describe("a claim without rivals", () => {
  it("is granted in one round trip: create and listing go out together, and no further reply is awaited", async () => {
    await warm(through);
    proxy.requests.length = 0;
    proxy.stall("replies");
    const granting = granted({ zookeeper: through });
    await vi.waitFor(() => expect(proxy.requests).toEqual(["create", "list"]), WAIT);
    await vi.waitFor(() => {
      proxy.deliver(); // what is held now, and nothing of what is asked for afterwards
      expect(proxy.requests).toContain("read");
    }, WAIT);
    const held = await granting;
    expect(held.signal.aborted).toBe(false);
    proxy.heal();
    await expect(held.release()).resolves.toBe("released");
  });

  it("takes four requests with its release: create, list, watch on the own znode, delete", async () => {
    await warm(through);
    proxy.requests.length = 0;
    await (await granted({ zookeeper: through })).release();
    expect(proxy.requests).toEqual(["create", "list", "read", "delete"]);
  });

  it("takes at most four requests with its release by the server's own count", async () => {
    await warm(direct);
    const rounds = 200;
    const before = await receivedPackets(server.connect);
    for (let round = 0; round < rounds; round += 1) {
      await (await granted({ zookeeper: direct })).release();
    }
    const received = (await receivedPackets(server.connect)) - before;
    // the count includes our question for it and the pings of idle sessions, which come every 1.3 seconds
    expect(received).toBeGreaterThanOrEqual(4 * rounds);
    expect(received).toBeLessThanOrEqual(4 * rounds + 20);
  });

  it("has as its token the czxid of the claim path and the number of its znode", async () => {
    const held = await granted({ zookeeper: direct });
    const { stat, children } = await (await sessionOf(direct)).list(claimPath(job));
    expect(held.token.generation).toBe(BigInt(stat.czxid));
    expect(held.token.sequence).toBe(0);
    expect(children).toEqual([expect.stringMatching(/^_c_.{36}-lock-0000000000$/)]);
    await held.release();
  });

  it("carries the era that the operator gave, and refuses one out of range", async () => {
    const held = await granted({ zookeeper: direct, era: 7 });
    expect(held.token.text).toMatch(/^00007\./);
    await held.release();
    await expect(claim({ zookeeper: direct, job, era: -1 })).rejects.toBeInstanceOf(OptionError);
  });

  it("is released when its block ends", async () => {
    {
      await using held = await granted({ zookeeper: direct });
      expect(held.remainingMs()).toBeGreaterThan(0);
    }
    expect(await contenders()).toEqual([]);
  });

  it.each(["a/b", "..", "{x}", "zookeeper", "😀", " ", "%2F"])(
    "works for the job id %j",
    async (id) => {
      const held = await granted({ zookeeper: direct, job: id });
      expect(held.job).toBe(id);
      await expect(claim({ zookeeper: direct, job: id })).resolves.toMatchObject({
        outcome: "busy",
      });
      await expect(held.release()).resolves.toBe("released");
    },
  );

  it("works below a chroot, with its watches", async () => {
    const session = await sessionOf(direct);
    await session.create(`/chroot-${job}`, "", "persistent");
    const rooted = new ZooKeeper({
      connect: `${server.connect}/chroot-${job}`,
      sessionTimeoutMs: SESSION_MS,
    });
    const held = await granted({ zookeeper: rooted });
    const next = granted({ zookeeper: rooted, waitMs: 30_000 });
    await vi.waitFor(async () => {
      expect(await contenders(`/chroot-${job}${claimPath(job)}`)).toHaveLength(2);
    }, WAIT);
    await held.release();
    const second = await next;
    await session.delete(`/chroot-${job}${second.path}`);
    await vi.waitFor(() => expect(lossOf(second)).toBe("deleted"), WAIT);
    await rooted.close();
  });
});

describe("a claim that somebody else holds", () => {
  it("is busy without waiting, says who is first, and leaves no contender behind", async () => {
    const held = await granted({ zookeeper: through });
    const answer = await claim({ zookeeper: direct, job });
    expect(answer).toMatchObject({ outcome: "busy", ahead: 1 });
    expect(await contenders()).toHaveLength(1);
    await held.release();
  });

  it("is busy after its wait is over, twenty times, and then is granted at once to a new contender", async () => {
    const held = await granted({ zookeeper: through });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => claim({ zookeeper: direct, job, waitMs: 300 })),
    );
    expect(answers.map(({ outcome }) => outcome)).toEqual(Array(20).fill("busy"));
    expect(await contenders()).toHaveLength(1);
    await held.release();
    expect(await contenders()).toHaveLength(0);
    await (await granted({ zookeeper: direct })).release();
  });

  it("is granted to the waiters in the order in which they came, with rising tokens", async () => {
    const held = await granted({ zookeeper: direct });
    const order: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let index = 0; index < 6; index += 1) {
      waiting.push(
        granted({ zookeeper: direct, waitMs: 30_000 }).then(async (next) => {
          order.push(next.token.sequence);
          await next.release();
        }),
      );
    }
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(7), WAIT);
    await held.release();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("wakes one waiter by its release, not all of them", async () => {
    const held = await granted({ zookeeper: direct });
    const waiting = Array.from({ length: 8 }, () =>
      granted({ zookeeper: through, waitMs: 30_000 }),
    );
    await vi.waitFor(
      () => expect(proxy.requests.filter((request) => request === "read")).toHaveLength(8),
      WAIT,
    );
    proxy.requests.length = 0;
    await held.release();
    const next = await Promise.race(waiting);
    await vi.waitFor(() => expect(proxy.requests).toEqual(["list", "read"]), WAIT);
    const rest = Promise.all(waiting.map(async (each) => (await each).release()));
    await next.release();
    await rest;
  });

  it("is given up by a signal, with the signal's reason and no contender left", async () => {
    const held = await granted({ zookeeper: direct });
    const controller = new AbortController();
    const waiting = claim({
      zookeeper: direct,
      job,
      waitMs: 30_000,
      signal: controller.signal,
    });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    controller.abort(new Error("changed my mind"));
    await expect(waiting).rejects.toThrow("changed my mind");
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(1), WAIT);
    await held.release();
  });

  it("passes over a waiter that died in the middle of the queue", async () => {
    const held = await granted({ zookeeper: direct });
    const middle = granted({ zookeeper: through, waitMs: 30_000 }).catch(() => {}); // its session is closed below
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    const last = granted({ zookeeper: direct, waitMs: 30_000 });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(3), WAIT);
    await through.close();
    await middle;
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    let lastGranted = false;
    const watching = last.then(() => {
      lastGranted = true;
    });
    // the predecessor of the last one is gone, but the holder is not: it has listed again and waits on
    expect(lastGranted).toBe(false);
    expect(held.signal.aborted).toBe(false);
    await held.release();
    await watching;
    await (await last).release();
  });

  it("is not taken from a persistent znode that looks like a contender, which is named as what blocks", async () => {
    await warm(direct);
    const session = await sessionOf(direct);
    const blocking = `${claimPath(job)}/_c_${randomUUID()}-lock-0000000000`;
    await session.create(blocking, "", "persistent");
    const warnings: string[] = [];
    const waiting = granted({
      zookeeper: direct,
      waitMs: 30_000,
      warn: (line) => warnings.push(line),
    });
    await vi.waitFor(() => expect(warnings.join()).toContain(blocking), WAIT);
    await session.delete(blocking);
    await (await waiting).release();
  });

  it("ignores a stranger's child that is no contender, and says so once", async () => {
    await warm(direct);
    await (await sessionOf(direct)).create(`${claimPath(job)}/config`, "", "persistent");
    const warnings: string[] = [];
    const warn = (line: string) => warnings.push(line);
    const held = await granted({ zookeeper: direct, warn });
    const waiting = granted({ zookeeper: direct, waitMs: 30_000, warn });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(3), WAIT);
    await held.release();
    await (await waiting).release();
    expect(warnings).toEqual([
      expect.stringContaining("config"),
      expect.stringContaining("config"),
    ]);
  });
});

describe("a claim whose replies are lost", () => {
  it("adopts the znode of a create whose reply was lost, and has only that one", async () => {
    await warm(through);
    const dropped = proxy.dropReplyOf("create");
    const granting = granted({ zookeeper: through });
    await dropped;
    const held = await granting;
    const children = await contenders();
    expect(children).toHaveLength(1);
    expect(held.path.endsWith(children[0] ?? "none")).toBe(true);
    expect(Number(children[0]?.slice(-10))).toBe(held.token.sequence);
    await expect(held.release()).resolves.toBe("released");
    expect(await contenders()).toEqual([]);
  });

  it("is granted although the reply to making its claim path was lost", async () => {
    await sessionOf(through);
    const dropped = proxy.dropReplyOf("createContainer");
    const granting = granted({ zookeeper: through });
    await dropped;
    await expect((await granting).release()).resolves.toBe("released");
  });

  it("leaves no znode behind when it is cancelled before a lost create is found again", async () => {
    const held = await granted({ zookeeper: direct });
    await sessionOf(through);
    const controller = new AbortController();
    const dropped = proxy.dropReplyOf("create");
    const waiting = claim({
      zookeeper: through,
      job,
      waitMs: 30_000,
      signal: controller.signal,
    });
    await dropped;
    controller.abort(new Error("changed my mind"));
    await expect(waiting).rejects.toThrow("changed my mind");
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(1), WAIT);
    await held.release();
  });

  it("is released although the reply of the delete was lost", async () => {
    const held = await granted({ zookeeper: through });
    const dropped = proxy.dropReplyOf("delete");
    const releasing = held.release();
    await dropped;
    await expect(releasing).resolves.toBe("released");
    expect(await contenders()).toEqual([]);
  });

  it("is not granted to a waiter whose connection breaks while it looks at its predecessor", async () => {
    const held = await granted({ zookeeper: direct });
    await sessionOf(through);
    const dropped = proxy.dropReplyOf("read");
    let answered = false;
    const waiting = granted({ zookeeper: through, waitMs: 60_000 }).finally(() => {
      answered = true;
    });
    await dropped;
    // after the reconnect it looks again: that it does is what is waited for
    await vi.waitFor(() => expect(proxy.requests.at(-1)).toMatch(/read|setWatches/), WAIT);
    await vi.waitFor(
      () =>
        expect(proxy.requests.filter((request) => request === "read").length).toBeGreaterThan(1),
      WAIT,
    );
    expect(answered).toBe(false);
    await held.release();
    await (await waiting).release();
  });

  it("is not granted to a waiter by broken connections, however many, while the holder lives", async () => {
    const held = await granted({ zookeeper: direct });
    await sessionOf(through);
    let answered = false;
    const waiting = granted({ zookeeper: through, waitMs: 60_000 }).finally(() => {
      answered = true;
    });
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(2), WAIT);
    for (let round = 0; round < 5; round += 1) {
      const looks = proxy.requests.filter((request) => request === "list").length;
      proxy.cut();
      await vi.waitFor(
        () =>
          expect(proxy.requests.filter((request) => request === "list").length).toBeGreaterThan(
            looks,
          ),
        WAIT,
      );
      expect(answered).toBe(false);
      expect(await contenders()).toHaveLength(2);
    }
    await held.release();
    await (await waiting).release();
  });

  it("keeps its token through a broken connection within its session", async () => {
    const held = await granted({ zookeeper: through });
    const { text } = held.token;
    const reads = proxy.requests.length;
    proxy.cut();
    await vi.waitFor(() => expect(proxy.requests.slice(reads)).toContain("read"), WAIT);
    expect(held.token.text).toBe(text);
    expect(held.signal.aborted).toBe(false);
    await expect(held.release()).resolves.toBe("released");
  });
});

describe("a claim that is lost", () => {
  it("has aborted by its local deadline before the next contender is granted, in a silent partition", async () => {
    const held = await granted({ zookeeper: through });
    const order: string[] = [];
    held.signal.addEventListener("abort", () => order.push(`lost by ${lossOf(held)}`));
    proxy.stall();
    const next = await granted({ zookeeper: direct, waitMs: 30_000 });
    order.push("granted");
    expect(order).toEqual(["lost by deadline", "granted"]);
    expect(held.remainingMs()).toBe(0);
    expect(compareTokens(next.token, held.token)).toBeGreaterThan(0);
    proxy.heal();
    await next.release();
    await expect(held.release()).resolves.toBe("lost");
  });

  it("never becomes valid again, and its process gets a fresh session and a higher token", async () => {
    const held = await granted({ zookeeper: through });
    const old = await sessionOf(through);
    proxy.stall();
    await vi.waitFor(() => expect(held.signal.aborted).toBe(true), WAIT);
    await vi.waitFor(async () => expect(await contenders()).toHaveLength(0), WAIT);
    proxy.heal();
    await vi.waitFor(() => expect(old.state).toBe("LOST"), WAIT);
    const again = await granted({ zookeeper: through, waitMs: 30_000 });
    expect((await sessionOf(through)).id).not.toBe(old.id);
    expect(compareTokens(again.token, held.token)).toBeGreaterThan(0);
    expect(held.signal.aborted).toBe(true);
    await again.release();
  });

  it("is told when a stranger deletes its znode, and its release says that it had been lost", async () => {
    const held = await granted({ zookeeper: through });
    await vi.waitFor(() => expect(proxy.requests).toContain("read"), WAIT);
    await (await sessionOf(direct)).delete(held.path);
    await vi.waitFor(() => expect(lossOf(held)).toBe("deleted"), WAIT);
    await expect(held.release()).resolves.toBe("lost");
  });

  it("is told when its znode was deleted while its connection was broken", async () => {
    const held = await granted({ zookeeper: through });
    proxy.stall();
    proxy.cut();
    await (await sessionOf(direct)).delete(held.path);
    proxy.heal();
    await vi.waitFor(() => expect(lossOf(held)).toBe("deleted"), WAIT);
  });

  it("is told when its session is closed", async () => {
    const held = await granted({ zookeeper: through });
    await through.close();
    await vi.waitFor(() => expect(lossOf(held)).toBe("closed"), WAIT);
  });

  it("is given up at once when its connection breaks, where that was asked for", async () => {
    const held = await granted({ zookeeper: through, abortOnSuspended: true });
    proxy.cut();
    await vi.waitFor(() => expect(lossOf(held)).toBe("suspended"), WAIT);
    await held.release();
  });

  it("stays valid for many session timeouts while the network is well, because the server is asked", async () => {
    const held = await granted({ zookeeper: through });
    const asked = () => proxy.requests.filter((request) => request === "sync").length;
    // six questions to a session timeout: after thirteen of them two timeouts have gone by
    await vi.waitFor(() => expect(asked()).toBeGreaterThanOrEqual(13), { timeout: 60_000 });
    expect(held.signal.aborted).toBe(false);
    await expect(held.release()).resolves.toBe("released");
  });
});

describe("a claim path that is deleted", () => {
  it("is made anew, and its tokens go on rising although the sequence starts at 0 again", async () => {
    const first = await granted({ zookeeper: direct });
    await first.release();
    await (await granted({ zookeeper: direct })).release();
    await (await sessionOf(direct)).delete(claimPath(job));
    const second = await granted({ zookeeper: direct });
    expect(second.token.sequence).toBe(0);
    expect(compareTokens(second.token, first.token)).toBeGreaterThan(0);
    await second.release();
  });

  it("fails no claim, however often somebody deletes it while it is empty", async () => {
    const session = await sessionOf(direct);
    let working = true;
    const deleting = (async () => {
      while (working) await session.delete(claimPath(job)).catch(() => {}); // missing or not empty: both are meant
    })();
    const rounds = 25;
    const tokens = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const mine = [];
        for (let round = 0; round < rounds; round += 1) {
          const held = await granted({ zookeeper: through, waitMs: 30_000 });
          mine.push(held.token);
          await held.release();
        }
        return mine;
      }),
    );
    working = false;
    await deleting;
    const all = tokens.flat();
    expect(new Set(all.map(({ text }) => text)).size).toBe(4 * rounds);
    for (const mine of tokens) {
      expect([...mine].sort(compareTokens)).toEqual(mine);
    }
  });

  it("is made anew also when the server itself removed the empty path, and its tokens go on rising", async () => {
    const reaping = await startZooKeeper({ zookeeper: { containerCheckIntervalMs: 200 } });
    const zookeeper = new ZooKeeper({ connect: reaping.connect, sessionTimeoutMs: SESSION_MS });
    try {
      const first = await granted({ zookeeper });
      await first.release();
      const session = await sessionOf(zookeeper);
      await vi.waitFor(
        async () => expect(await childrenOf(session, claimsPath())).toEqual([]),
        WAIT,
      );
      const second = await granted({ zookeeper });
      expect(second.token.sequence).toBe(0);
      expect(compareTokens(second.token, first.token)).toBeGreaterThan(0);
      await second.release();
    } finally {
      await zookeeper.close();
      await reaping.stop();
    }
  });
});
