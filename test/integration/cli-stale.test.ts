/**
 * Goal: `status --stale` finds every key with refused writes, and nothing else. Method: a Redis of its own, because the
 * report is about the whole database.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { readStaleWrites } from "../../lib/redis/stale-writes.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { cli, MAIN } from "../support/cli.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

let redis: TestRedis;
let sink: Sink;

beforeAll(async () => {
  redis = await startRedis();
  sink = openRedisSink({ url: redis.url });
});
afterAll(async () => {
  await sink.close();
  await redis.stop();
});
beforeEach(() => raw("FLUSHALL"));

const raw = (...words: string[]) => rawRedisAt(redis.url, ...words);
const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });
const stale = (...flags: string[]) =>
  cli(["status", ...flags, "--stale"], {
    env: { REDIS_URL: redis.url, ZOOKEEPER_CONNECT: undefined },
  });

/** Commits at the key, and has so many older writes refused. */
async function refused(key: string, job: string, times: number): Promise<void> {
  await sink.commitResult({ key, job, token: token(9), value: "newer" });
  for (let sequence = 1; sequence <= times; sequence++) {
    await sink.commitResult({ key, job, token: token(sequence), value: "late" });
  }
}

describe("status --stale", () => {
  it("lists the keys with refused writes, those with the most first, and needs no ZooKeeper", async () => {
    await refused("report:1", "nightly", 1);
    await refused("page {7}", "render", 3);
    await refused("clean", "nightly", 0);
    const { status, stdout } = await stale();
    expect(status).toBe(0);
    expect(stdout.toString()).toMatch(
      new RegExp(
        '^ +3 refused {2}"page \\{7\\}" {2}job "render" {2}fence 9, last token 3 [\\d.]+ m?s ago\\n' +
          ' +1 refused {2}"report:1" {2}job "nightly" {2}fence 9, last token 1 [\\d.]+ m?s ago\\n$',
      ),
    );
  });

  it("gives the same to programs as JSON, and one job's keys only", async () => {
    await refused("report:1", "nightly", 1);
    await refused("page:7", "render", 3);
    const rows = JSON.parse((await stale("nightly", "--json")).stdout.toString());
    expect(rows).toEqual([
      {
        key: "report:1",
        job: "nightly",
        tokenText: token(9).text,
        staleCount: 1,
        observedCount: 0,
        last: { tokenText: token(1).text, atMs: expect.any(Number), ageMs: expect.any(Number) },
      },
    ]);
    expect(rows[0].last.ageMs).toBeLessThan(60_000);
    expect(Math.abs(Date.now() - rows[0].last.atMs)).toBeLessThan(60_000);
  });

  it("says so when no write was refused, and passes strangers' keys by", async () => {
    await raw("SET", "fence:{text}", "not a hash");
    await raw("HSET", "fence:strange", "stale", "3");
    await raw("HSET", "fence:{other}", "stale", "many");
    expect((await stale()).stdout.toString()).toBe("no write was refused\n");
  });

  it("finds each key once among many more than one page", async () => {
    const value = "v";
    for (let first = 0; first < 3_000; first += 500) {
      const keys = Array.from({ length: 500 }, (_, index) => `many:${first + index}`);
      await Promise.all(
        keys.map((key) => sink.commitResult({ key, job: "j", token: token(9), value })),
      );
    }
    const chosen = ["many:3", "many:1499", "many:2998"];
    for (const key of chosen) await refused(key, "j", 2);
    const found = await readStaleWrites({ url: redis.url });
    expect(found.map(({ key }) => key).sort()).toEqual([...chosen].sort());
    expect(found.map(({ staleCount }) => staleCount)).toEqual([2, 2, 2]);
  });

  it("counts what was written under --observe, by commit and by run with all that it runs", async () => {
    const newest = makeToken({ era: 99, generation: 1n, sequence: 1 });
    for (const key of ["report", "part"]) {
      await sink.commitResult({ key, job: "nightly", token: newest, value: "newer" });
    }
    const env = { REDIS_URL: redis.url };
    const late = ["--token", token(3).text, "--job", "nightly"];
    const refused = await cli(["commit", "--key", "report", ...late], { env, input: "late" });
    expect(refused.status).toBe(73);
    const args = ["commit", "--key", "report", ...late, "--observe"];
    const observed = await cli(args, { env, input: "late" });
    expect(observed.status).toBe(0);
    expect(observed.stderr).toContain('the write at "report" is stale, and was made');
    expect((await sink.readResult("report")).value?.toString()).toBe("late");
    const script = `echo of the part | "${process.execPath}" "${MAIN}" commit --key part; echo of run`;
    const run = ["run", "nightly", "--key", "report", "--observe", "--", "sh", "-c", script];
    expect((await cli(run, { env })).status).toBe(0);
    expect((await sink.readResult("report")).value?.toString()).toBe("of run\n");
    expect((await sink.readResult("part")).value?.toString()).toBe("of the part\n");
    const { stdout } = await stale();
    expect(stdout.toString()).toMatch(
      /1 refused, 3 observed {2}"report"[\s\S]*1 observed {2}"part"/,
    );
  });

  it("is wrong usage together with --key, or without a Redis", async () => {
    expect((await stale("nightly", "--key", "k")).status).toBe(64);
    const without = { REDIS_URL: undefined, ZOOKEEPER_CONNECT: undefined };
    expect((await cli(["status", "--stale"], { env: without })).status).toBe(64);
  });
});
