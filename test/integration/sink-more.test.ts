/**
 * What the sink does beyond one result under a fence that is there: deletions, batches, keys that are only observed,
 * fences that the server has lost, prefixes and retention. Goal: each answer, with what it leaves behind.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { OptionError, ResultTypeError } from "../../lib/errors.js";
import { FencePolicy } from "../../lib/redis/fence-policy.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { CommitRequest, Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

let server: TestRedis;
let redis: Redis;
let sink: Sink;
let run = 0;
let key = "";

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  sink = openRedisSink({ url: server.url });
});

afterAll(async () => {
  await sink?.close();
  await redis?.quit();
  await server?.stop();
});

beforeEach(() => {
  key = `sink-more:${process.pid}:${run++}`;
});

const token = (sequence: number) => makeToken({ era: 0, generation: 4294967298n, sequence });

function advance(sequence: number) {
  return sink.advanceFence({ key, job: "job", token: token(sequence) });
}

function commit(sequence: number, value: string, more: Partial<CommitRequest> = {}) {
  return sink.commitResult({ key, job: "job", token: token(sequence), value, ...more });
}

describe("invalidateResult", () => {
  const invalidate = (sequence: number) =>
    sink.invalidateResult({ key, job: "job", token: token(sequence) });

  it("deletes the value and keeps out what was begun before", async () => {
    await commit(1, "one", { ttlMs: 50_000 });
    expect(await invalidate(3)).toEqual({ outcome: "invalidated", found: true });
    expect(await redis.exists(key)).toBe(0);
    expect(await commit(2, "computed from what is outdated")).toMatchObject({ outcome: "stale" });
    expect((await sink.readResult(key)).fence).toMatchObject({
      state: "open",
      committed: undefined,
    });
    expect(await invalidate(3)).toEqual({ outcome: "invalidated", found: false });
    expect(await commit(3, "new")).toEqual({ outcome: "committed", revision: 1 });
  });

  it("refuses a token below the fence and a claim of another job, and leaves the value", async () => {
    await commit(5, "five");
    expect(await invalidate(4)).toEqual({ outcome: "stale", fenceText: token(5).text });
    const other = await sink.invalidateResult({ key, job: "other", token: token(9) });
    expect(other).toEqual({ outcome: "foreign", owner: "job" });
    expect(await redis.get(key)).toBe("five");
  });
});

describe("commitResults", () => {
  const results = (...values: (string | undefined)[]) =>
    values.map((value, index) => ({ key: `${key}:${index}`, value }));
  const commitAll = (sequence: number, ...values: (string | undefined)[]) =>
    sink.commitResults({ job: "job", token: token(sequence), results: results(...values) });
  const stored = () => redis.mget(`${key}:0`, `${key}:1`);

  it("writes all results of a claim, deletions among them", async () => {
    expect(await commitAll(1, "a", "b")).toEqual({ outcome: "committed", revisions: [1, 1] });
    expect(await stored()).toEqual(["a", "b"]);
    expect(await commitAll(2, "c", undefined)).toEqual({ outcome: "committed", revisions: [1, 0] });
    expect(await stored()).toEqual(["c", null]);
    expect(await commitAll(1, "late", "late")).toMatchObject({ outcome: "stale", key: `${key}:0` });
  });

  it("writes none of them when one is refused", async () => {
    const last = { key: `${key}:1`, job: "job", token: token(7), value: "newer" };
    await sink.commitResult(last);
    expect(await commitAll(5, "a", "b")).toEqual({
      ...{ outcome: "stale", fenceText: token(7).text, key: `${key}:1` },
    });
    expect(await stored()).toEqual([null, "newer"]);
    await redis.lpush(`${key}:2`, "a list");
    await expect(commitAll(8, "a", "b", "c")).rejects.toThrow(ResultTypeError);
    expect(await stored()).toEqual([null, "newer"]);
  });

  it("knows a batch again, and refuses another one under the same token in mode once", async () => {
    await commitAll(1, "a", "b");
    expect(await commitAll(1, "a", "b")).toEqual({ outcome: "duplicate", revisions: [1, 1] });
    expect(await commitAll(1, "a", "x")).toEqual({ outcome: "conflict", key: `${key}:1` });
  });

  it("needs a result, and each key once", async () => {
    const twice = { job: "job", token: token(1), results: [...results("a"), ...results("b")] };
    await expect(sink.commitResults(twice)).rejects.toThrow(OptionError);
    await expect(sink.commitResults({ ...twice, results: [] })).rejects.toThrow(OptionError);
  });

  it("writes nothing when a newer claim has raised a guarded fence, and changes nothing there", async () => {
    const [about, note] = [`{${key}}:report`, `{${key}}:note`];
    const noteOf = (sequence: number, value: string) =>
      sink.commitResults({
        ...{ job: "job", token: token(sequence), guards: [about] },
        results: [{ key: note, value }],
      });
    await sink.advanceFence({ key: about, job: "job", token: token(1) });
    expect(await noteOf(1, "one")).toEqual({ outcome: "committed", revisions: [1] });
    await sink.advanceFence({ key: about, job: "job", token: token(2) });
    const refused = { outcome: "stale", key: about, fenceText: token(2).text };
    expect(await noteOf(1, "late")).toEqual(refused);
    expect((await sink.readResult(note)).value?.toString()).toBe("one");
    expect((await sink.readResult(about)).fence).toMatchObject({ staleCount: 1, state: "open" });
    expect(await noteOf(3, "new")).toMatchObject({ outcome: "committed" });
    expect((await sink.readResult(about)).fence?.tokenText).toBe(token(2).text);
  });
});

describe("a sink that observes", () => {
  const policy = new FencePolicy({ prefixes: { "sink-more:": "observe" } });
  let observing: Sink;
  beforeAll(() => {
    observing = openRedisSink({ url: server.url, policy });
  });
  afterAll(() => observing?.close());

  const late = (value: string) =>
    observing.commitResult({ key, job: "job", token: token(1), value });

  it("writes what enforcing would refuse, and counts it", async () => {
    await commit(2, "two");
    const refusal = { outcome: "stale", fenceText: token(2).text };
    expect(await late("late")).toEqual({ outcome: "observed", refusal });
    expect(await redis.get(key)).toBe("late");
    const { fence, matches } = await observing.readResult(key);
    expect(matches).toBe(false);
    expect(fence).toMatchObject({ tokenText: token(2).text, staleCount: 0, observedCount: 1 });
  });

  it("is switched by the beginning of the key, while it is in use", async () => {
    await commit(2, "two");
    policy.set(key, "enforce");
    expect(await late("late")).toMatchObject({ outcome: "stale" });
    policy.set(key, "observe");
    expect(await late("late")).toMatchObject({ outcome: "observed" });
  });

  it("lets work begin whose fence is passed", async () => {
    await advance(5);
    const answer = await observing.advanceFence({ key, job: "job", token: token(4) });
    expect(answer).toMatchObject({ outcome: "observed", refusal: { outcome: "stale" } });
    expect((await observing.readResult(key)).fence?.tokenText).toBe(token(5).text);
  });
});

describe("a fence that the server has lost", () => {
  it("is raised again with those of all other claims, before anything is written", async () => {
    const losses: string[] = [];
    const ours = openRedisSink({
      url: server.url,
      onFenceLoss: ({ key: lost }) => losses.push(lost),
    });
    onTestFinished(() => ours.close());
    const claims = [1, 2].map((number) => ({
      ...{ key: `${key}:${number}`, job: "job", token: token(10 + number) },
    }));
    for (const claim of claims) {
      await ours.advanceFence(claim);
      onTestFinished(ours.keepRaised(claim));
    }
    const keys = claims.map((claim) => `fence:{${claim.key}}`);
    await redis.del(keys);
    const [first, second] = claims as [(typeof claims)[0], (typeof claims)[0]];
    const answer = await ours.commitResult({ ...first, value: "one" });
    expect(answer).toEqual({ outcome: "committed", revision: 1 });
    expect(losses.sort()).toEqual(claims.map((claim) => claim.key));
    const old = await sink.commitResult({ ...second, token: token(3), value: "old" });
    expect(old).toMatchObject({ outcome: "stale" });
  });

  it("is not raised again after its claim has ended", async () => {
    const claim = { key, job: "job", token: token(5) };
    await sink.advanceFence(claim);
    sink.keepRaised(claim)();
    await redis.del(`fence:{${key}}`);
    expect(await commit(4, "four")).toMatchObject({ outcome: "committed" });
  });
});

describe("a large result", () => {
  const large = Buffer.alloc(300_000, "0123456789abcdef");
  const stages = () => redis.keys("fence-stage:*");

  it("is moved into place by the script, and leaves nothing behind", async () => {
    expect(await commit(1, large.toString(), { ttlMs: 90_000 })).toMatchObject({ revision: 1 });
    expect((await redis.getBuffer(key))?.equals(large)).toBe(true);
    expect(await redis.pttl(key)).toBeGreaterThan(60_000);
    expect((await sink.readResult(key)).matches).toBe(true);
    await commit(2, large.toString());
    expect(await redis.pttl(key)).toBe(-1);
    expect(await stages()).toEqual([]);
  });

  it("that is stale, or was committed before, is not left behind either", async () => {
    await commit(2, large.toString());
    expect(await commit(1, `${large}late`)).toMatchObject({ outcome: "stale" });
    expect(await commit(2, large.toString())).toEqual({ outcome: "duplicate", revision: 1 });
    expect(await commit(2, `${large}other`)).toEqual({ outcome: "conflict" });
    expect(await stages()).toEqual([]);
  });

  it("is written when the server has forgotten the scripts", async () => {
    await redis.script("FLUSH");
    expect(await commit(1, large.toString())).toMatchObject({ outcome: "committed" });
    expect((await sink.readResult(key)).matches).toBe(true);
  });

  it("is stored compressed where that is asked for, and read as it was", async () => {
    const compressing = openRedisSink({ url: server.url, compress: {} });
    onTestFinished(() => compressing.close());
    await compressing.commitResult({ key, job: "job", token: token(1), value: large });
    expect(await redis.strlen(key)).toBeLessThan(10_000);
    expect((await compressing.readResult(key)).value?.equals(large)).toBe(true);
    expect((await sink.readResult(key)).value?.equals(large)).toBe(true);
    await redis.set(key, "a stranger's");
    expect((await sink.readResult(key)).value?.toString()).toBe("a stranger's");
    await commit(2, "small");
    expect((await sink.readResult(key)).value?.toString()).toBe("small");
  });
});

describe("durability", () => {
  it("tells how many replicas have a write, and that it was accepted all the same", {
    timeout: 60_000,
  }, async () => {
    await redis.config("SET", "repl-diskless-sync-delay", "0");
    const waiting = openRedisSink({
      url: server.url,
      durability: { replicas: 1, timeoutMs: 50 },
    });
    onTestFinished(() => waiting.close());
    const request = { key, job: "job", token: token(1), value: "one" };
    const missed = { replicas: 0, aof: undefined, reached: false };
    const first = await waiting.commitResult(request);
    expect(first).toEqual({ outcome: "committed", revision: 1, durability: missed });

    const replica = await startRedis({ source: "programs" });
    onTestFinished(() => replica.stop());
    const admin = new Redis(replica.url);
    await admin.replicaof("127.0.0.1", server.port);
    await vi.waitFor(async () => {
      const again = await waiting.commitResult(request);
      expect(again).toMatchObject({ outcome: "duplicate", durability: { reached: true } });
    }, 20_000);
    const answers = [
      await waiting.advanceFence({ ...request, token: token(2) }),
      await waiting.commitResult({ ...request, token: token(2) }),
      await waiting.invalidateResult({ ...request, token: token(3) }),
    ];
    const reached = { replicas: 1, aof: undefined, reached: true };
    for (const answer of answers) expect(answer).toMatchObject({ durability: reached });
    expect(await waiting.commitResult(request)).toEqual({
      ...{ outcome: "stale", fenceText: token(3).text },
    });
    await admin.quit();
  });
});

describe("writes in flight at once", () => {
  it("wait for replicas together, so that a missing one holds none of them up for the others", async () => {
    const waiting = openRedisSink({ url: server.url, durability: { replicas: 9, timeoutMs: 50 } });
    onTestFinished(() => waiting.close());
    await waiting.readResult(key);
    await redis.config("RESETSTAT");
    const commits = Array.from({ length: 40 }, (_, index) =>
      waiting.commitResult({ key: `${key}:${index}`, job: "job", token: token(1), value: "one" }),
    );
    for (const answer of await Promise.all(commits)) {
      expect(answer).toMatchObject({ outcome: "committed", durability: { reached: false } });
    }
    const [, waits] = /^cmdstat_wait:calls=(\d+)/m.exec(await redis.info("commandstats")) ?? [];
    expect(Number(waits)).toBeGreaterThan(0);
    expect(Number(waits)).toBeLessThan(20);
  });
});

describe("a server in the place of another", () => {
  it("gets the fences of all claims before anything is written to it", async () => {
    const losses: string[] = [];
    const gone = await startRedis({ args: ["--appendonly", "no"], source: "programs" });
    onTestFinished(() => gone.stop());
    const ours = openRedisSink({
      ...{ url: gone.url, timeoutMs: 20_000 },
      onFenceLoss: ({ key: lost }) => losses.push(lost),
    });
    onTestFinished(() => ours.close());
    const held = { key, job: "job", token: token(7) };
    await ours.advanceFence(held);
    onTestFinished(ours.keepRaised(held));
    await gone.kill();
    await gone.restart();
    const other = { key: `${key}:other`, job: "other", token: token(1), value: "v" };
    await ours.commitResult(other);
    expect(losses).toEqual([key]);
    const late = await ours.commitResult({ ...held, token: token(6), value: "late" });
    expect(late).toMatchObject({ outcome: "stale" });
  });
});

describe("a key prefix", () => {
  it("is part of the key, and of the fence", async () => {
    const prefixed = openRedisSink({ url: server.url, keyPrefix: "app:" });
    onTestFinished(() => prefixed.close());
    const request = { key, job: "job", token: token(1), value: "one" };
    expect(await prefixed.commitResult(request)).toMatchObject({ outcome: "committed" });
    expect(await redis.get(`app:${key}`)).toBe("one");
    expect(await redis.exists(`fence:{app:${key}}`)).toBe(1);
    expect(await prefixed.readResult(key)).toMatchObject({ key, matches: true });
    await redis.del(`app:${key}`, `fence:{app:${key}}`);
  });
});

describe("a retention", () => {
  it("lets the fence of a result that expires live so much longer, and no other", async () => {
    const short = openRedisSink({ url: server.url, retentionMs: 500_000 });
    onTestFinished(() => short.close());
    const fence = `fence:{${key}}`;
    const request = { key, job: "job", token: token(1), value: "one" };
    await short.commitResult({ ...request, ttlMs: 100_000 });
    expect(await redis.pttl(fence)).toBeGreaterThan(500_000);
    await short.commitResult({ ...request, token: token(2) });
    expect(await redis.pttl(fence)).toBe(-1);
    await short.invalidateResult({ ...request, token: token(3) });
    expect(await redis.pttl(fence)).toBeGreaterThan(400_000);
    await short.advanceFence({ ...request, token: token(4) });
    expect(await redis.pttl(fence)).toBe(-1);
  });
});
