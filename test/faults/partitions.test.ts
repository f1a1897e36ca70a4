/**
 * Goal: in a silent partition the holder is told before anybody else is granted its job, in every one of many rounds,
 * and a handler that goes on all the same writes nothing.
 * Method: each holder has a proxy and a session of its own; its waiter speaks to the server itself. Both live in this
 * process, so the order of the two events is the order in which they are noted. No time is measured.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { CommitAnswer, Sink } from "../../lib/sink.js";
import { compareTokens } from "../../lib/token.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import { fencedRun } from "../../recipes/fenced-run.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const SESSION_MS = 4_000;
const WAIT_MS = 40_000;

type Direction = "requests" | "replies";

let server: ZooKeeperServer;
let direct: ZooKeeper;
let sink: Sink;

beforeAll(async () => {
  // sessions end at whole ticks: a short one, so that a round does not take longer than its session
  server = await startZooKeeper({ zookeeper: { tickTimeMs: 500 } });
  direct = new ZooKeeper({ connect: server.connect, sessionTimeoutMs: SESSION_MS });
  sink = openRedisSink({ url: inject("redis") });
});
afterAll(async () => {
  await Promise.all([direct?.close(), sink?.close()]);
  await server?.stop();
});

async function granted(options: ClaimOptions): Promise<Claim> {
  const answer = await claim(options);
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

/** A holder behind a proxy of its own. */
class Partitionable implements AsyncDisposable {
  readonly job = `job-${randomUUID()}`;

  private constructor(
    readonly proxy: ZooKeeperProxy,
    readonly zookeeper: ZooKeeper,
  ) {}

  static async open(): Promise<Partitionable> {
    const proxy = await ZooKeeperProxy.start(server.port);
    const connect = { connect: proxy.connect, connectTimeoutMs: WAIT_MS };
    return new Partitionable(proxy, new ZooKeeper({ ...connect, sessionTimeoutMs: SESSION_MS }));
  }

  /** The proxy goes first: a session that is closed through it would wait for what it keeps back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy.close();
    await this.zookeeper.close();
  }
}

/** One round: a holder, a waiter, a partition between the holder and the server. Gives what happened, in order. */
async function cutOff(directions: Direction[], waitMs = WAIT_MS): Promise<string[]> {
  await using holder = await Partitionable.open();
  const { job, proxy, zookeeper } = holder;
  const events: string[] = [];
  const held = await granted({ zookeeper, job });
  held.signal.addEventListener("abort", () => events.push("the signal aborted"));
  const waiting = granted({ zookeeper: direct, job, waitMs }).then((next) => {
    events.push("the next was granted");
    return next;
  });
  proxy.stall(...directions);
  const next = await waiting;
  if (compareTokens(next.token, held.token) > 0) events.push("with a higher token");
  await next.release();
  return events;
}

const IN_ORDER = ["the signal aborted", "the next was granted", "with a higher token"];

async function cutOffAll(ways: Direction[][]): Promise<void> {
  const rounds = await Promise.all(ways.map((way) => cutOff(way)));
  expect(rounds).toEqual(ways.map(() => IN_ORDER));
}

const times = (count: number, ...ways: Direction[][]) =>
  Array.from({ length: count }, () => ways).flat();

describe("a silent partition", () => {
  // 50 rounds in two batches, so that neither the holders' pings nor their deadlines wait for one another
  it.each(["first", "second"])(
    "aborts the signal before the next grant, in each of the %s 25 rounds",
    () => cutOffAll(times(25, ["requests", "replies"])),
  );

  // The client's own reconnects reach the server and keep its session alive, though their answers never come back.
  it("lets the job go on within three session timeouts also when only the replies are lost", async () => {
    const rounds = Array.from({ length: 10 }, () => cutOff(["replies"], 3 * SESSION_MS));
    expect(await Promise.all(rounds)).toEqual(rounds.map(() => IN_ORDER));
  });

  it("aborts the signal before the next grant also when only the requests are lost", () =>
    cutOffAll(times(10, ["requests"])));
});

describe("a handler that goes on in a silent partition", () => {
  it("is answered with lost, its own writes are refused, and the newer result stands", async () => {
    await using holder = await Partitionable.open();
    const { job, proxy, zookeeper } = holder;
    const result = { sink, key: `key-${job}` };
    let late: CommitAnswer | undefined;
    const old = await fencedRun({ zookeeper, job, result }, async ({ token }) => {
      proxy.stall();
      const newer = { zookeeper: direct, job, result, waitMs: WAIT_MS };
      const next = await fencedRun(newer, async () => "newer");
      expect(next).toMatchObject({ outcome: "committed" });
      late = await sink.commitResult({ key: result.key, job, token, value: "older" });
      return "older still";
    });
    expect(late).toMatchObject({ outcome: "stale" });
    expect(old).toMatchObject({ outcome: "lost", error: { reason: "deadline" } });
    expect((await sink.readResult(result.key)).value?.toString()).toBe("newer");
  });
});
