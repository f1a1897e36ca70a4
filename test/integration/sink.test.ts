/**
 * The sink's answers on a real Redis: what each call answers, what it leaves behind, and that the newest token wins
 * whatever the order. Goal: every expected answer, each with the state of value and fence after it.
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { JobIdError, OptionError, ResultKeyError, ResultTooLargeError } from "../../lib/errors.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { RESULT_BYTES_MAX } from "../../lib/redis/request-form.js";
import { digestOf } from "../../lib/redis/stored-form.js";
import type { CommitRequest, Sink } from "../../lib/sink.js";
import { compareTokens, type FencingToken, makeToken } from "../../lib/token.js";
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
  key = `sink-test:${process.pid}:${run++}`;
});

/** Of a fence that was raised, and under whose token nothing was written. */
const NO_ORDER = "0".repeat(16);

const token = (sequence: number) => makeToken({ era: 0, generation: 4294967298n, sequence });
const fenceHash = () => redis.hgetall(`fence:{${key}}`);

function advance(sequence: number, holder = `holder ${sequence}`) {
  return sink.advanceFence({ key, job: "job", token: token(sequence), holder });
}

function commit(sequence: number, value: Uint8Array | string, more: Partial<CommitRequest> = {}) {
  const holder = `holder ${sequence}`;
  return sink.commitResult({ key, job: "job", token: token(sequence), value, holder, ...more });
}

describe("advanceFence", () => {
  it("raises a fence that is not there, for token 0 too", async () => {
    expect(await advance(0)).toEqual({ outcome: "advanced", present: undefined });
    expect(await fenceHash()).toEqual({
      token: token(0).text,
      job: "job",
      state: "open",
      holder: "holder 0",
      order: NO_ORDER,
    });
  });

  it("is current at the same token, and stale below it, which is counted", async () => {
    await advance(5);
    const before = await fenceHash();
    expect(await advance(5, "other")).toEqual({ outcome: "current", present: undefined });
    expect(await fenceHash()).toEqual(before);
    expect(await advance(4)).toEqual({ outcome: "stale", fenceText: token(5).text });
    expect(await fenceHash()).toMatchObject({
      ...before,
      stale: "1",
      lastStaleToken: token(4).text,
    });
  });

  it("tells which result is there, and leaves it there", async () => {
    await commit(3, "three");
    const advanced = await advance(4);
    expect(advanced).toMatchObject({
      outcome: "advanced",
      present: { tokenText: token(3).text, revision: 1 },
    });
    expect(await advance(4)).toMatchObject({
      outcome: "current",
      present: { tokenText: token(3).text },
    });
    expect(await redis.get(key)).toBe("three");
  });

  it("tells of no result when the committed value has gone", async () => {
    await commit(3, "three");
    await redis.del(key);
    expect(await advance(4)).toEqual({ outcome: "advanced", present: undefined });
  });

  it("tells of no result when the value was never committed", async () => {
    await redis.set(key, "from before");
    expect(await advance(1)).toEqual({ outcome: "advanced", present: undefined });
    expect(await redis.get(key)).toBe("from before");
  });

  it("changes nothing for another job", async () => {
    await advance(5);
    const before = await fenceHash();
    const answer = await sink.advanceFence({ key, job: "other", token: token(9) });
    expect(answer).toEqual({ outcome: "foreign", owner: "job" });
    expect(await fenceHash()).toEqual(before);
  });

  it("takes away a time to live that somebody gave the fence", async () => {
    await advance(1);
    await redis.expire(`fence:{${key}}`, 1000);
    await advance(2);
    expect(await redis.ttl(`fence:{${key}}`)).toBe(-1);
  });
});

describe("commitResult", () => {
  it("writes value and fence", async () => {
    expect(await commit(1, "one")).toEqual({ outcome: "committed", revision: 1 });
    expect(await redis.get(key)).toBe("one");
    expect(await fenceHash()).toEqual({
      token: token(1).text,
      job: "job",
      state: "committed",
      holder: "holder 1",
      order: expect.stringMatching(/^\d{16}$/),
      committedAt: expect.stringMatching(/^\d{13}$/),
      digest: digestOf(Buffer.from("one")),
      revision: "1",
    });
  });

  it("answers a repeat with the same value as a duplicate, and changes nothing", async () => {
    await commit(1, "one");
    const before = await fenceHash();
    expect(await commit(1, "one")).toEqual({ outcome: "duplicate", revision: 1 });
    expect(await fenceHash()).toEqual(before);
  });

  it("refuses another value under the same token in mode once", async () => {
    await commit(1, "one");
    const before = await fenceHash();
    expect(await commit(1, "other")).toEqual({ outcome: "conflict" });
    expect(await redis.get(key)).toBe("one");
    expect(await fenceHash()).toEqual(before);
  });

  it("takes other values under the same token in mode update, and counts them", async () => {
    await advance(1);
    expect(await commit(1, "10%", { mode: "update" })).toMatchObject({ revision: 1 });
    expect(await commit(1, "20%", { mode: "update" })).toEqual({
      outcome: "committed",
      revision: 2,
    });
    expect(await commit(2, "new", { mode: "update" })).toEqual({
      outcome: "committed",
      revision: 1,
    });
    expect(await redis.get(key)).toBe("new");
  });

  it("renews the time to live when the same value is written again in mode update", async () => {
    await commit(1, "10%", { mode: "update", ttlMs: 50_000 });
    const again = await commit(1, "10%", { mode: "update", ttlMs: 900_000 });
    expect(again).toEqual({ outcome: "committed", revision: 2 });
    expect(await redis.pttl(key)).toBeGreaterThan(800_000);
  });

  it("puts a value back that is gone, when its claim commits it again", async () => {
    await commit(1, "one");
    await redis.del(key);
    expect(await commit(1, "one")).toEqual({ outcome: "committed", revision: 2 });
    expect(await redis.get(key)).toBe("one");
  });

  it("refuses a token below the fence, and counts the refusal", async () => {
    await advance(7);
    expect(await commit(6, "late")).toEqual({ outcome: "stale", fenceText: token(7).text });
    expect(await commit(5, "later")).toEqual({ outcome: "stale", fenceText: token(7).text });
    expect(await redis.exists(key)).toBe(0);
    expect(await fenceHash()).toEqual({
      token: token(7).text,
      job: "job",
      state: "open",
      holder: "holder 7",
      order: NO_ORDER,
      stale: "2",
      lastStaleToken: token(5).text,
      lastStaleAt: expect.stringMatching(/^\d{13}$/),
    });
  });

  it("refuses an older token before the newer one has written anything", async () => {
    await advance(1);
    await advance(2);
    expect(await commit(1, "woke up late")).toMatchObject({ outcome: "stale" });
    expect(await commit(2, "two")).toMatchObject({ outcome: "committed" });
    expect(await redis.get(key)).toBe("two");
  });

  it("takes a newer token without an advance, and refuses the older one from then on", async () => {
    await commit(1, "one");
    expect(await commit(3, "three")).toEqual({ outcome: "committed", revision: 1 });
    expect(await commit(2, "two")).toMatchObject({ outcome: "stale" });
    expect(await redis.get(key)).toBe("three");
  });

  it("takes over a value that was there before fencing", async () => {
    await redis.set(key, "from before");
    expect(await commit(0, "fenced")).toEqual({ outcome: "committed", revision: 1 });
    expect(await redis.get(key)).toBe("fenced");
  });

  it("changes nothing for another job, whatever its token", async () => {
    await commit(5, "ours");
    const before = await fenceHash();
    for (const sequence of [1, 5, 9]) {
      const answer = await commit(sequence, "theirs", { job: "other" });
      expect(answer).toEqual({ outcome: "foreign", owner: "job" });
    }
    expect(await redis.get(key)).toBe("ours");
    expect(await fenceHash()).toEqual(before);
  });

  it("knows a job again whose id is too long to be stored", async () => {
    const job = "a/long/job/".repeat(20);
    expect(await commit(1, "one", { job })).toMatchObject({ outcome: "committed" });
    expect(await commit(2, "two", { job })).toMatchObject({ outcome: "committed" });
    expect(await commit(3, "no", { job: `${job}x` })).toMatchObject({ outcome: "foreign" });
    expect((await fenceHash()).job).toMatch(/^sha256:/);
  });

  it("keeps the fence in the compact form of Redis", async () => {
    await commit(1, "one", { job: "j".repeat(64), holder: "é".repeat(100) });
    await advance(2, "x".repeat(200));
    await commit(1, "late");
    expect(await redis.object("ENCODING", `fence:{${key}}`)).toMatch(/^(listpack|ziplist)$/);
  });

  it.each([
    ["an empty text", ""],
    ["text beyond ASCII", "größer 🔑"],
    ["bytes with NUL that are not UTF-8", Uint8Array.from([0, 255, 254, 0, 13, 10, 128])],
    ["one megabyte", Buffer.alloc(1024 * 1024, "0123456789abcdef")],
  ])("keeps %s exactly", async (_, value) => {
    expect(await commit(1, value)).toMatchObject({ outcome: "committed" });
    const answer = await sink.readResult(key);
    expect(answer.value?.equals(Buffer.from(value as Uint8Array))).toBe(true);
    expect(answer.matches).toBe(true);
    expect(await commit(1, value)).toMatchObject({ outcome: "duplicate" });
  });

  it("sets the time to live that is asked for, and drops an older one", async () => {
    await commit(1, "one", { ttlMs: 90_000 });
    expect(await redis.pttl(key)).toBeGreaterThan(60_000);
    expect(await redis.pttl(key)).toBeLessThanOrEqual(90_000);
    await commit(2, "two");
    expect(await redis.pttl(key)).toBe(-1);
    await commit(3, "three", { ttlMs: Number.MAX_SAFE_INTEGER });
    expect(await redis.pttl(key)).toBeGreaterThan(2 ** 52);
  });

  it("keeps refusing after the result has expired: the fence does not expire", async () => {
    await redis.hset(`fence:{${key}}`, { token: token(1).text, job: "job", state: "open" });
    await redis.expire(`fence:{${key}}`, 1000);
    await commit(2, "two", { ttlMs: 50_000 });
    expect(await redis.ttl(`fence:{${key}}`)).toBe(-1);
    await redis.del(key);
    expect(await commit(1, "late")).toMatchObject({ outcome: "stale" });
    expect(await redis.exists(key)).toBe(0);
  });
});

describe("readResult", () => {
  it("finds nothing where nothing is", async () => {
    const answer = await sink.readResult(key);
    expect(answer).toEqual({ key, value: undefined, fence: undefined, matches: undefined });
  });

  it("reads a value that has no fence", async () => {
    await redis.set(key, "plain");
    const answer = await sink.readResult(key);
    expect(answer).toEqual({
      key,
      value: Buffer.from("plain"),
      fence: undefined,
      matches: undefined,
    });
  });

  it("tells the committed result apart from the newer claim that has not committed", async () => {
    await commit(1, "one");
    await advance(2);
    await commit(1, "late");
    const answer = await sink.readResult(key);
    expect(answer.value?.toString()).toBe("one");
    expect(answer.matches).toBe(true);
    expect(answer.fence).toMatchObject({
      tokenText: token(2).text,
      job: "job",
      state: "open",
      committed: { tokenText: token(1).text, revision: 1, holder: "holder 1" },
      staleCount: 1,
      lastStale: { tokenText: token(1).text },
    });
  });

  it("tells when the value is not the one that was committed", async () => {
    await commit(1, "one");
    await redis.set(key, "written past the fence");
    expect((await sink.readResult(key)).matches).toBe(false);
    await redis.del(key);
    expect((await sink.readResult(key)).matches).toBe(false);
  });
});

describe("the order of tokens", () => {
  const edge = (): fc.Arbitrary<FencingToken> =>
    fc
      .record({
        era: fc.constantFrom(0, 1, 9, 10, 99_999),
        generation: fc.constantFrom(
          0n,
          9n,
          10n,
          2n ** 32n,
          2n ** 53n,
          2n ** 53n + 1n,
          2n ** 63n - 1n,
        ),
        sequence: fc.constantFrom(0, 1, 9, 10, 99, 100, 1_000_000_000, 2_147_483_646),
      })
      .map(makeToken);

  it("is decided in Redis as it is in the process, at every edge", async () => {
    const property = fc.asyncProperty(edge(), edge(), async (first, second) => {
      await redis.del(key, `fence:{${key}}`);
      await sink.advanceFence({ key, job: "job", token: first });
      const { outcome } = await sink.advanceFence({ key, job: "job", token: second });
      const order = compareTokens(second, first);
      expect(outcome).toBe(order < 0 ? "stale" : order === 0 ? "current" : "advanced");
    });
    await fc.assert(property, { numRuns: 300 });
  });

  it("holds in a race: the newest token's value stays, and all others are older or refused", async () => {
    const racers = await Promise.all(
      [1, 2, 3, 4].map(async () => openRedisSink({ url: server.url })),
    );
    // 40 numbers in an order that is neither rising nor falling: multiples of 17 modulo 41.
    const sequences = [...Array(40).keys()].map((index) => ((index + 1) * 17) % 41);
    const answers = await Promise.all(
      sequences.map((sequence, index) =>
        (racers[index % 4] as Sink).commitResult({
          key,
          job: "job",
          token: token(sequence),
          value: `value ${sequence}`,
        }),
      ),
    );
    expect(answers).toHaveLength(40);
    for (const { outcome } of answers) expect(["committed", "stale"]).toContain(outcome);
    const refused = answers.filter(({ outcome }) => outcome === "stale").length;
    const answer = await sink.readResult(key);
    expect(answer.value?.toString()).toBe("value 40");
    expect(answer.fence).toMatchObject({ tokenText: token(40).text, staleCount: refused });
    await Promise.all(racers.map((racer) => racer.close()));
  });

  it("lets one of many different values under one token in", async () => {
    const values = [...Array(20).keys()].map((number) => `value ${number}`);
    const answers = await Promise.all(values.map((value) => commit(1, value)));
    const outcomes = answers.map(({ outcome }) => outcome).sort();
    expect(outcomes).toEqual(["committed", ...Array(19).fill("conflict")].sort());
  });
});

describe("what is given to the sink", () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
    "a time to live of %s ms is refused",
    async (ttlMs) => {
      await expect(commit(1, "one", { ttlMs })).rejects.toThrow(OptionError);
      expect(await redis.exists(key)).toBe(0);
    },
  );

  it("a value that is neither text nor bytes, or half a character, is refused", async () => {
    await expect(commit(1, 5 as unknown as string)).rejects.toThrow(OptionError);
    await expect(commit(1, "\ud800")).rejects.toThrow(OptionError);
  });

  it("a mode that does not exist is refused", async () => {
    await expect(commit(1, "one", { mode: "twice" as "once" })).rejects.toThrow(OptionError);
  });

  it("an empty job id and a key that cannot have a fence are refused", async () => {
    await expect(commit(1, "one", { job: "" })).rejects.toThrow(JobIdError);
    await expect(commit(1, "one", { key: "fence:{a}" })).rejects.toThrow(ResultKeyError);
    await expect(sink.readResult("")).rejects.toThrow(ResultKeyError);
  });

  it("a result that is larger than Redis can hold is refused, not cut", async () => {
    const tooLarge = new Uint8Array(RESULT_BYTES_MAX + 1);
    await expect(commit(1, tooLarge)).rejects.toThrow(ResultTooLargeError);
  });

  it("the bytes of a value are taken at the call, whatever becomes of them later", async () => {
    const value = Buffer.from("at the call");
    const committed = commit(1, value);
    value.fill("x");
    expect(await committed).toMatchObject({ outcome: "committed" });
    expect(await sink.readResult(key)).toMatchObject({ matches: true });
    expect(await redis.get(key)).toBe("at the call");
  });

  it("a key with a hash tag has its fence under the same tag", async () => {
    const tagged = `{tag ${key}}:result`;
    await sink.commitResult({ key: tagged, job: "job", token: token(1), value: "v" });
    expect(await redis.hget(`fence:${tagged}`, "token")).toBe(token(1).text);
  });
});
