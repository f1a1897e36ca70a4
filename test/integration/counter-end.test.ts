/**
 * Goal: near the end of ZooKeeper's 32-bit counter no number is granted twice, and people need not do anything.
 * Method: a server of our own that starts on a snapshot in which the counters stand there.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { SequenceExhaustedError } from "../../lib/errors.js";
import { compareTokens, type FencingToken } from "../../lib/token.js";
import { claimPath, nameOf } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { contenderPrefix, parseContenderName } from "../../lib/zookeeper/znode-name.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimAnswer, type ClaimOptions, claim } from "../../recipes/claim.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { childrenOf, withSession } from "../support/raw-zookeeper.js";
import { SNAPSHOT_ZXID, type SnapshotNode, writeSnapshot } from "../support/zookeeper-snapshot.js";

const END = 2_147_483_647;
/** From this number on, an arrival does not stay in a claim path of ours: 2^20 before the end. */
const HOLD_BACK = 2_146_435_071;
const START = BigInt(SNAPSHOT_ZXID);
const WAIT = { timeout: 30_000, interval: 20 };

const RAW_PATH = "/raw";
/** Lock paths of a user's, by what they are. */
const LOCK_PATHS = { persistent: "/mine/persistent", container: "/mine/container" } as const;
/** Claim paths of ours: where their counters stand, by job. */
const COUNTERS = {
  "comes-near": HOLD_BACK - 10,
  "two-before-the-end": END - 2,
  "at-the-end": END,
  "cancelled-waiter": HOLD_BACK - 1,
  "patient-waiter": HOLD_BACK - 1,
  "impatient-waiter": HOLD_BACK - 1,
  "no-wait": HOLD_BACK - 1,
  "stranger-at-the-end": END - 2,
  "stranger-and-contention": HOLD_BACK + 1000,
} as const;
type Job = keyof typeof COUNTERS;
/** A stranger's child, no contender, in the claim paths of these jobs. */
const STRANGER = "notes-of-a-stranger";
const WITH_STRANGER: readonly Job[] = ["stranger-at-the-end", "stranger-and-contention"];

const NODES: readonly SnapshotNode[] = [
  { path: RAW_PATH, mode: "persistent", counter: END - 2 },
  { path: LOCK_PATHS.persistent, mode: "persistent", counter: END - 7 },
  { path: LOCK_PATHS.container, mode: "container", counter: END - 7 },
  ...Object.entries(COUNTERS).map(
    ([job, counter]) => ({ path: claimPath(job), mode: "container", counter }) as const,
  ),
  ...WITH_STRANGER.map(
    (job) => ({ path: `${claimPath(job)}/${STRANGER}`, mode: "persistent" }) as const,
  ),
];

let folder: string;
let server: ZooKeeperServer;
let opened: ZooKeeper[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
  await writeSnapshot(folder, NODES);
  server = await startZooKeeper({
    // The server must not make a path afresh in our place.
    zookeeper: { seedFolder: folder, containerCheckIntervalMs: 3_600_000 },
  });
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

afterEach(async () => {
  await Promise.all(opened.map((zookeeper) => zookeeper.close()));
  opened = [];
});

function open(): ZooKeeper {
  const zookeeper = new ZooKeeper({ connect: server.connect });
  opened.push(zookeeper);
  return zookeeper;
}

describe("what the server does at the end of its counter", () => {
  it("goes up to 2147483647 and then appends that number again and again", async () => {
    await onServer(async (session) => {
      const appended: (number | undefined)[] = [];
      for (let i = 0; i < 5; i++) appended.push(await createdNumber(session));
      expect(appended).toEqual([END - 2, END - 1, END, END, END]);
    });
  });

  it("appends negative numbers when creates come at once, and 2147483647 to the next single one", async () => {
    await onServer(async (session) => {
      await vi.waitFor(async () => {
        const atOnce = Array.from({ length: 8 }, () => createdNumber(session));
        const appended = await Promise.all(atOnce);
        expect(appended).toContain(END);
        expect(Math.min(...appended)).toBeLessThan(0);
      }, WAIT);
      expect(await createdNumber(session)).toBe(END);
    });
  });
});

describe("a claim path whose counter comes near its end", () => {
  it("is made afresh under contention before a number from the last 2^20 is granted", async () => {
    const { tokens } = await contend("comes-near", { contenders: 6, rounds: 5 });
    expect(tokens).toHaveLength(30);
    expectRising(tokens);
    for (const { sequence } of tokens) expect(sequence).toBeLessThan(HOLD_BACK);
    // claims of the old path, then claims of a new one
    expect(tokens[0]).toMatchObject({ generation: START, sequence: HOLD_BACK - 10 });
    expect(tokens.at(-1)?.generation).toBeGreaterThan(START);
    expect(await contenders("comes-near")).toEqual([]);
  });

  it.each(["two-before-the-end", "at-the-end"] as const)(
    "grants nothing from a path that stands %s, and makes it afresh under contention",
    async (job) => {
      const { tokens } = await contend(job, { contenders: 6, rounds: 5 });
      expect(tokens).toHaveLength(30);
      expectRising(tokens);
      for (const { sequence } of tokens) expect(sequence).toBeLessThan(HOLD_BACK);
      for (const { generation } of tokens) expect(generation).toBeGreaterThan(START);
      expect(await contenders(job)).toEqual([]);
    },
  );
});

describe("a waiter that holds back", () => {
  it("gets the claim from a fresh path once the old one's holder has released it", async () => {
    const held = await granted({ zookeeper: open(), job: "patient-waiter" });
    const { waiting } = await holdsBack("patient-waiter", held, { waitMs: 60_000 });
    await held.release();
    const next = claimOf(await waiting);
    expect(held.token.generation).toBe(START);
    expect(next.token.generation).toBeGreaterThan(START);
    expect(next.token.sequence).toBeLessThan(HOLD_BACK);
    await next.release();
  });

  it("gets the reason of its signal and leaves no contender when it is cancelled", async () => {
    const held = await granted({ zookeeper: open(), job: "cancelled-waiter" });
    const cancel = new AbortController();
    const options = { waitMs: 60_000, signal: cancel.signal };
    const { waiting } = await holdsBack("cancelled-waiter", held, options);
    const reason = new Error("no longer wanted");
    cancel.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(await contenders("cancelled-waiter")).toEqual([nameOf(held.path)]);
    expect(held.signal.aborted).toBe(false);
    await held.release();
  });

  it("hears that the job is busy and leaves no contender when its wait is over", async () => {
    const held = await granted({ zookeeper: open(), job: "impatient-waiter" });
    const waitMs = 1_500;
    const startedMs = performance.now();
    const { waiting } = await holdsBack("impatient-waiter", held, { waitMs });
    expect(await waiting).toMatchObject({ outcome: "busy", holder: nameOf(held.path) });
    expect(performance.now() - startedMs).toBeGreaterThan(waitMs - 50);
    expect(await contenders("impatient-waiter")).toEqual([nameOf(held.path)]);
    await held.release();
  });

  it("hears at once that the job is busy when it does not want to wait", async () => {
    const held = await granted({ zookeeper: open(), job: "no-wait" });
    const answer = await claim({ zookeeper: open(), job: "no-wait" });
    expect(answer).toMatchObject({ outcome: "busy", holder: nameOf(held.path) });
    expect(await contenders("no-wait")).toEqual([nameOf(held.path)]);
    await held.release();
  });
});

describe("a path near its end that we must not make afresh", () => {
  it.each(Object.entries(LOCK_PATHS))(
    "is used up to its last number but one when it is a user's %s lock path, with a warning, and never deleted",
    async (mode, lockPath) => {
      const zookeeper = open();
      for (let sequence = END - 7; sequence < END; sequence++) {
        const warnings: string[] = [];
        const warn = (message: string) => warnings.push(message);
        const held = await granted({ zookeeper, job: mode, lockPath, warn });
        expect(held.token).toMatchObject({ generation: START, sequence });
        expect(warnings).toEqual([expect.stringContaining(lockPath)]);
        await held.release();
      }
      const atTheEnd = () => claim({ zookeeper, job: mode, lockPath, waitMs: 10_000 });
      await expect(atTheEnd()).rejects.toBeInstanceOf(SequenceExhaustedError);
      const atOnce = await Promise.allSettled(Array.from({ length: 8 }, atTheEnd));
      for (const end of atOnce) {
        expect(end).toMatchObject({ reason: expect.any(SequenceExhaustedError) });
      }
      const { children, stat } = await onServer((session) => session.list(lockPath));
      expect(children).toEqual([]);
      expect(stat.czxid).toBe(SNAPSHOT_ZXID);
    },
  );

  it("is used up to its last number but one when a stranger's child is in it, which a warning names", async () => {
    const job = "stranger-at-the-end";
    const zookeeper = open();
    for (let sequence = END - 2; sequence < END; sequence++) {
      const warnings: string[] = [];
      const warn = (message: string) => warnings.push(message);
      const held = await granted({ zookeeper, job, warn });
      expect(held.token).toMatchObject({ generation: START, sequence });
      expect(warnings).toContainEqual(expect.stringContaining(STRANGER));
      await held.release();
    }
    const refused = claim({ zookeeper, job, waitMs: 10_000 });
    await expect(refused).rejects.toBeInstanceOf(SequenceExhaustedError);
    expect(await onServer((session) => childrenOf(session, claimPath(job)))).toEqual([STRANGER]);
  });

  it("serves contenders in turn although a stranger's child is in it", async () => {
    const job = "stranger-and-contention";
    const { tokens, warnings } = await contend(job, { contenders: 3, rounds: 3 });
    expect(tokens).toHaveLength(9);
    expectRising(tokens);
    for (const { generation, sequence } of tokens) {
      expect(generation).toBe(START);
      expect(sequence).toBeLessThan(END);
    }
    expect(warnings).toContainEqual(expect.stringContaining(STRANGER));
    expect(await contenders(job)).toEqual([]);
  });
});

/** Every contender has a session of its own, and claims and releases again and again. */
async function contend(
  job: Job,
  times: { contenders: number; rounds: number },
): Promise<{ tokens: FencingToken[]; warnings: string[] }> {
  const tokens: FencingToken[] = [];
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  let holders = 0;
  const contender = async (zookeeper: ZooKeeper) => {
    for (let round = 0; round < times.rounds; round++) {
      const held = await granted({ zookeeper, job, waitMs: 60_000, warn });
      tokens.push(held.token);
      holders += 1;
      await (await sessionOf(zookeeper)).read(held.path); // a moment of work
      expect(holders).toBe(1);
      holders -= 1;
      expect(await held.release()).toBe("released");
    }
  };
  await Promise.all(Array.from({ length: times.contenders }, () => contender(open())));
  return { tokens, warnings };
}

/** @param tokens in the order of their grants */
function expectRising(tokens: readonly FencingToken[]): void {
  tokens.slice(1).forEach((token, index) => {
    const earlier = tokens[index] as FencingToken;
    expect(compareTokens(earlier, token), `${earlier.text}, then ${token.text}`).toBeLessThan(0);
  });
}

/** Claims while another one holds the job; comes back when the contender has been removed and the claim waits. */
async function holdsBack(
  job: Job,
  held: Claim,
  options: Partial<ClaimOptions>,
): Promise<{ waiting: Promise<ClaimAnswer> }> {
  const zookeeper = open();
  const deleting = vi.spyOn(await sessionOf(zookeeper), "delete");
  const waiting = claim({ zookeeper, job, ...options });
  let over = false;
  const end = () => {
    over = true;
  };
  waiting.then(end, end);
  await vi.waitFor(() => {
    expect(deleting.mock.calls).toEqual([[expect.stringContaining(`${claimPath(job)}/`)]]);
    expect(deleting.mock.settledResults[0]?.type).toBe("fulfilled");
  }, WAIT);
  expect(over).toBe(false);
  expect(await contenders(job)).toEqual([nameOf(held.path)]);
  return { waiting };
}

/** The one that claims from here have, too. */
function sessionOf(zookeeper: ZooKeeper): Promise<Session> {
  return zookeeper.session(Deadline.after(10_000, systemClock));
}

async function granted(options: ClaimOptions): Promise<Claim> {
  return claimOf(await claim({ answerMs: 30_000, ...options }));
}

function claimOf(answer: ClaimAnswer): Claim {
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

function onServer<T>(use: (session: Session) => Promise<T>): Promise<T> {
  return withSession(use, server.connect);
}

/** Names of the contenders that are there now. */
async function contenders(job: Job): Promise<string[]> {
  const children = await onServer((session) => childrenOf(session, claimPath(job)));
  return children.filter((name) => name !== STRANGER);
}

async function createdNumber(session: Session): Promise<number> {
  const prefix = `${RAW_PATH}/${contenderPrefix(randomUUID())}`;
  const created = await session.create(prefix, "", "ephemeralSequential");
  const name = parseContenderName(created.slice(RAW_PATH.length + 1));
  if (name === undefined) throw new Error(`${created} is no contender's name`);
  return name.sequence;
}
