/**
 * Goal: three servers and the faults that only they have (a new leader, a follower that is behind, a session that moves
 * from one to another) cost a claim time at most, never its order.
 * Method: a real ensemble whose servers are killed and stopped, and proxies that show which server a session is at.
 */
import { randomUUID } from "node:crypto";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  vi,
} from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { compareTokens, type FencingToken } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import { fencedRun } from "../../recipes/fenced-run.js";
import { Ensemble, type Member } from "../support/ensemble.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 6_000;
/** The longest that a tick of half a second allows: an election, also on a busy machine, is shorter. */
const LONG_SESSION_MS = 10_000;
const BOUND_MS = 60_000;
const WAIT = { timeout: BOUND_MS, interval: 20 };

let ensemble: Ensemble;
let job: string;
/** What a test has opened, closed after it in this order. */
let opened: { close(): Promise<void> }[];

beforeAll(async () => {
  ensemble = await Ensemble.start();
});
afterAll(() => ensemble?.stop());

beforeEach(() => {
  job = `job-${randomUUID()}`;
  opened = [];
});
afterEach(async () => {
  await ensemble.restore();
  // the proxies were opened first and go first: a session that is closed through one waits for what it keeps back
  for (const each of opened) await each.close();
});

function open(connect: string, sessionTimeoutMs = SESSION_MS): ZooKeeper {
  const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs, connectTimeoutMs: BOUND_MS });
  opened.push(zookeeper);
  return zookeeper;
}

async function proxyFor(member: Member): Promise<ZooKeeperProxy> {
  const proxy = await ZooKeeperProxy.start(member.port);
  opened.push(proxy);
  return proxy;
}

async function granted(options: Partial<ClaimOptions> & { zookeeper: ZooKeeper }): Promise<Claim> {
  const answer = await claim({ job, waitMs: BOUND_MS, answerMs: BOUND_MS, ...options });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

const sessionOf = (zookeeper: ZooKeeper) =>
  zookeeper.session(Deadline.after(BOUND_MS, systemClock));

/** As the leader has it: a follower may not know yet. */
async function contenders(zookeeper: ZooKeeper): Promise<string[]> {
  const session = await sessionOf(zookeeper);
  await session.sync(claimPath(job));
  return childrenOf(session, claimPath(job));
}

/** A session behind two proxies to two followers. */
async function behindTwoProxies(sessionTimeoutMs = SESSION_MS) {
  const followers = await ensemble.followers();
  const proxies = await Promise.all(followers.map(proxyFor));
  const zookeeper = open(proxies.map(({ connect }) => connect).join(","), sessionTimeoutMs);
  await (await granted({ zookeeper })).release();
  const [near, far] = proxies[0]?.connections ? [0, 1] : [1, 0];
  return {
    zookeeper,
    /** The one that the session is at. */
    near: { member: followers[near] as Member, proxy: proxies[near] as ZooKeeperProxy },
    far: { member: followers[far] as Member, proxy: proxies[far] as ZooKeeperProxy },
  };
}

/** Claims and releases without end, and notes the tokens. */
class Worker {
  readonly tokens: FencingToken[] = [];
  readonly #ended: Promise<void>;
  #stopping = false;

  constructor(readonly zookeeper: ZooKeeper) {
    this.#ended = this.#work();
  }

  async #work(): Promise<void> {
    while (!this.#stopping) {
      const held = await granted({ zookeeper: this.zookeeper });
      this.tokens.push(held.token);
      await held.release();
    }
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#ended;
  }
}

describe("an ensemble whose leader is killed", () => {
  it("hands the job on through the election, from each worker to the next, and its tokens rise", async () => {
    const workers = ensemble.members.map(() => new Worker(open(ensemble.connect)));
    const progress = async () => {
      const before = workers.map(({ tokens }) => tokens.length);
      await vi.waitFor(() => {
        const after = workers.map(({ tokens }) => tokens.length);
        expect(after.every((count, at) => count > (before[at] ?? 0))).toBe(true);
      }, WAIT);
    };
    await progress();
    const old = await ensemble.leader();
    await old.kill();
    await ensemble.leader({ not: old });
    await progress();
    await old.restore();
    await progress();
    await Promise.all(workers.map((worker) => worker.stop()));
    for (const { tokens } of workers) expect([...tokens].sort(compareTokens)).toEqual(tokens);
    const all = workers.flatMap(({ tokens }) => tokens);
    expect(new Set(all.map(({ text }) => text)).size).toBe(all.length);
    expect(await contenders(open(ensemble.connect))).toEqual([]);
  });

  it("leaves a claim to its holder, with the same token, within its session", async () => {
    const zookeeper = open(ensemble.connect, LONG_SESSION_MS);
    const held = await granted({ zookeeper, stopGraceMs: 0 });
    const { text } = held.token;
    const session = await sessionOf(zookeeper);
    const old = await ensemble.leader();
    await old.kill();
    await ensemble.leader({ not: old });
    const electedAtMs = session.clock.nowMs();
    await vi.waitFor(() => expect(session.lastConfirmedAtMs).toBeGreaterThan(electedAtMs), WAIT);
    expect(held.signal.aborted).toBe(false);
    expect(held.token.text).toBe(text);
    await expect(held.release()).resolves.toBe("released");
  });
});

describe("a session that moves from one server to another", () => {
  it("recovers a create whose reply was lost through a follower that is behind, after a sync", async () => {
    const { zookeeper, near, far } = await behindTwoProxies();
    await far.member.pause(); // the create is accepted by the other two
    const dropped = near.proxy.dropReplyOf("create");
    const granting = granted({ zookeeper });
    await dropped;
    await near.proxy.close(); // there is only the one that is behind
    await far.member.restore();
    const held = await granting;
    expect(await contenders(open((await ensemble.leader()).connect))).toEqual([
      held.path.slice(claimPath(job).length + 1),
    ]);
    const looks = far.proxy.requests.filter((request) => /^(sync|list)$/.test(request));
    expect(looks.slice(0, 2)).toEqual(["sync", "list"]);
    await expect(held.release()).resolves.toBe("released");
  });

  it("has one contender, although the old connection delivers a create when the session has moved", async () => {
    const { zookeeper, near, far } = await behindTwoProxies();
    const { id } = await sessionOf(zookeeper);
    const before = near.proxy.requests.length;
    near.proxy.stall();
    const granting = granted({ zookeeper });
    await vi.waitFor(() => expect(near.proxy.held).toBeGreaterThanOrEqual(2), WAIT);
    const held = await granting;
    expect(far.proxy.requests).toContain("create");
    near.proxy.heal();
    await vi.waitFor(() => expect(near.proxy.requests.slice(before)).toContain("create"), WAIT);
    await vi.waitFor(() => expect(near.proxy.connections).toBe(0), WAIT);
    // asked at the server that got the late create, so after it
    const there = open(near.member.connect);
    expect(await contenders(there)).toEqual([held.path.slice(claimPath(job).length + 1)]);
    expect((await sessionOf(zookeeper)).id).toBe(id);
    expect(held.signal.aborted).toBe(false);
    await expect(held.release()).resolves.toBe("released");
    expect(await contenders(there)).toEqual([]);
  });

  it("keeps a claim and its token when its follower is stopped", async () => {
    const { zookeeper, near, far } = await behindTwoProxies(LONG_SESSION_MS);
    const held = await granted({ zookeeper, stopGraceMs: 0 });
    const { text } = held.token;
    await near.member.pause();
    await vi.waitFor(() => expect(far.proxy.requests).toContain("read"), WAIT);
    expect(held.signal.aborted).toBe(false);
    expect(held.token.text).toBe(text);
    await expect(held.release()).resolves.toBe("released");
  });
});

describe("an ensemble with a slow follower", () => {
  it("hands the job over between workers at all servers, and each one finds the result of the last", async () => {
    const sink = openRedisSink({ url: inject("redis") });
    opened.push(sink);
    const result = { sink, key: `key-${job}` };
    const [slow] = await ensemble.followers();
    const elsewhere = open((await ensemble.leader()).connect);
    const rounds = 10;
    let working = true;
    const slowing = (async () => {
      while (working) {
        await slow.pause();
        await (await granted({ zookeeper: elsewhere, job: `other-${job}` })).release();
        await slow.restore();
      }
    })();
    const counted = async () => Number((await sink.readResult(result.key)).value ?? 0);
    const work = async (zookeeper: ZooKeeper) => {
      for (let round = 0; round < rounds; round += 1) {
        const options = { zookeeper, job, waitMs: BOUND_MS, result };
        const answer = await fencedRun(options, async () => String((await counted()) + 1));
        expect(answer).toMatchObject({ outcome: "committed" });
      }
    };
    await Promise.all(ensemble.members.map(({ connect }) => work(open(connect))));
    working = false;
    await slowing;
    expect(await counted()).toBe(rounds * ensemble.members.length);
  });
});

describe("an ensemble of which all servers are killed", () => {
  it("hands the job on when they are back, with a higher token and no contender left over", async () => {
    const zookeeper = open(ensemble.connect);
    const held = await granted({ zookeeper });
    const waiting = granted({ zookeeper: open(ensemble.connect) });
    await vi.waitFor(async () => expect(await contenders(zookeeper)).toHaveLength(2), WAIT);
    await Promise.all(ensemble.members.map((member) => member.kill()));
    await ensemble.restore();
    await held.release();
    const next = await waiting;
    expect(compareTokens(next.token, held.token)).toBeGreaterThan(0);
    await next.release();
    const fresh = open(ensemble.connect);
    await vi.waitFor(async () => expect(await contenders(fresh)).toEqual([]), WAIT);
  });
});
