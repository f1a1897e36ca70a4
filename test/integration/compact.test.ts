/**
 * Goal: `compact` leaves fences for live jobs only, and lets no old token in. Method: a Redis of its own, full of
 * fences of finished jobs; FENCEKEEPER_JOBS=1000000 makes it as many as that.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { Deadline } from "../../lib/deadline.js";
import { ClaimLostError, ConfigurationError } from "../../lib/errors.js";
import { type FenceStore, openRedisFences } from "../../lib/redis/fence-store.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, claim } from "../../recipes/claim.js";
import { type CompactOptions, compact } from "../../recipes/compact.js";
import { type CliOptions, cli, MAIN, startCli } from "../support/cli.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

const JOBS = Number(process.env.FENCEKEEPER_JOBS ?? 30_000);

let redis: TestRedis;
let zookeeper: ZooKeeper;
let sink: Sink;
let fences: FenceStore;
let root: string;

beforeAll(async () => {
  redis = await startRedis();
  zookeeper = new ZooKeeper({ connect: inject("zookeeper") });
  sink = openRedisSink({ url: redis.url });
  fences = openRedisFences({ url: redis.url });
});
afterAll(async () => {
  await Promise.all([zookeeper.close(), sink.close(), fences.close()]);
  await redis.stop();
});
beforeEach(async () => {
  root = `/compact-${randomUUID()}`;
  await raw("FLUSHALL");
});

const raw = (...words: string[]) => rawRedisAt(redis.url, ...words);
const count = async (...words: string[]) => Number(/^:(\d+)/m.exec(await raw(...words))?.[1]);
const isThere = async (key: string) => (await count("EXISTS", `fence:{${key}}`)) === 1;
const run = (options: Partial<CompactOptions> = {}) =>
  compact({ zookeeper, fences, root, ...options });
const command = (flags: string[], options: CliOptions = {}) => {
  const env = { REDIS_URL: redis.url, ...options.env };
  return cli(["compact", "--root", root, ...flags], { ...options, env });
};

/** Who claims a job, with the fence of its key (the job's id) raised. */
async function worker(job: string, within = root): Promise<Claim> {
  const answer = await claim({ zookeeper, job, root: within, waitMs: 10_000 });
  if (answer.outcome === "busy") throw new Error("the job is claimed");
  await sink.advanceFence(identity(answer.claim));
  return answer.claim;
}

const identity = (held: Claim) => ({
  ...{ key: held.job, job: held.job, token: held.token },
  confirm: (signal: AbortSignal | undefined) => held.confirm(signal),
});

/** A job that was claimed, and has ended, with its result or without. */
async function finished(job: string, value?: string): Promise<Claim> {
  const held = await worker(job);
  if (value !== undefined) await sink.commitResult({ ...identity(held), value });
  await held.release();
  return held;
}

/** Fences of many finished jobs, `done:1` and so on, whose results have expired. */
async function manyFinished(jobs: number, tokenText: string): Promise<void> {
  const script = `
    for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
      local job = 'done:' .. number
      redis.call('HSET', 'fence:{' .. job .. '}', 'token', ARGV[3], 'job', job, 'state', 'committed', 'holder', 'h',
        'digest', ('0'):rep(64), 'revision', '1', 'committedAt', '1', 'order', ('0'):rep(16))
    end`;
  for (let from = 1; from <= jobs; from += 20_000) {
    const to = Math.min(from + 19_999, jobs);
    await raw("EVAL", script, "0", String(from), String(to), tokenText);
  }
}

describe("compact", () => {
  it("removes the fences of jobs whose result is gone, and of no others", async () => {
    await finished("done");
    await finished("with result", "the result");
    const live = await worker("live");
    const report = await run();
    expect(report).toMatchObject({ met: 3, dropped: 1 });
    expect(report.kept).toEqual({ live: 1, result: 1, changed: 0, floor: 0, unreadable: 0 });
    expect(await isThere("done")).toBe(false);
    expect(await isThere("with result")).toBe(true);
    expect(await isThere("live")).toBe(true);
    await live.release();
  });

  it("changes nothing in a dry run, and counts the same", async () => {
    await finished("done");
    await finished("with result", "the result");
    const before = await count("DBSIZE");
    const report = await run({ dryRun: true });
    expect(report).toMatchObject({ met: 2, dropped: 1, floorText: undefined });
    expect(report.kept.result).toBe(1);
    expect(await count("DBSIZE")).toBe(before);
  });

  it("removes those with a result only when it is told to, and leaves the result", async () => {
    await finished("with result", "the result");
    expect(await run({ withResults: true })).toMatchObject({ dropped: 1 });
    const { value, fence } = await sink.readResult("with result");
    expect(value?.toString()).toBe("the result");
    expect(fence).toBeUndefined();
  });

  it("leaves what is no fence of ours where it is, and says how many there are", async () => {
    await raw("SET", "fence:{list}", "no hash");
    await raw("HSET", "fence:{corrupt}", "token", "7");
    await raw("HSET", "fence:half", "token", "7");
    await finished("done");
    const { met, dropped, kept } = await run({ withResults: true });
    expect({ met, dropped, unreadable: kept.unreadable }).toEqual({
      met: 4,
      dropped: 1,
      unreadable: 3,
    });
    expect(await count("EXISTS", "fence:{list}", "fence:{corrupt}", "fence:half")).toBe(3);
  });

  it("leaves fences that are above ZooKeeper's last transaction, and counts them", async () => {
    await finished("done");
    const token = makeToken({ era: 1, generation: 1n, sequence: 1 }).text;
    await manyFinished(1, token);
    const { dropped, kept } = await run();
    expect({ dropped, floor: kept.floor }).toEqual({ dropped: 1, floor: 1 });
  });

  it("keeps an old token out after its fence was removed, also where the result is there", async () => {
    for (const [job, value] of [
      ["gone", undefined],
      ["there", "newer"],
    ] as const) {
      const old = await finished(job);
      await finished(job, value);
      await run({ withResults: true });
      expect(await isThere(job)).toBe(false);
      const { confirm, ...unconfirmed } = identity(old);
      const late = await sink.commitResult({ ...unconfirmed, value: "late" });
      expect(late).toMatchObject({ outcome: "stale" });
      const asked = sink.commitResult({ ...unconfirmed, confirm, value: "late" });
      await expect(asked).rejects.toThrow(ClaimLostError);
      const { value: stored } = await sink.readResult(job);
      expect(stored?.toString()).toBe(value);
    }
  });

  it("does not lock out a holder whose fence it removed because the claim is elsewhere", async () => {
    await finished("done");
    const live = await worker("elsewhere", `${root}/other`);
    const letGo = sink.keepRaised(identity(live));
    expect(await run()).toMatchObject({ dropped: 2 });
    const answer = await sink.commitResult({ ...identity(live), value: "from a live claim" });
    expect(answer).toMatchObject({ outcome: "committed" });
    letGo();
    await live.release();
  });

  it("lets the next claim of a job begin, also where its claim path is older than the floor", async () => {
    const keeper = await worker("job");
    const next = claim({ zookeeper, job: "job", root, waitMs: 10_000 });
    await finished("other");
    await run();
    await keeper.release();
    const answer = await next;
    if (answer.outcome === "busy") throw new Error("nobody else is there");
    await raw("DEL", "fence:{job}");
    expect(await sink.advanceFence(identity(answer.claim))).toMatchObject({ outcome: "advanced" });
    await answer.claim.release();
  });

  it("refuses to judge by a ZooKeeper in which nobody ever claimed, and changes nothing", async () => {
    await manyFinished(2, makeToken({ era: 0, generation: 1n, sequence: 1 }).text);
    await expect(run()).rejects.toThrow(ConfigurationError);
    await expect(run({ dryRun: true })).rejects.toThrow(ConfigurationError);
    expect(await count("DBSIZE")).toBe(2);
  });

  it("goes in rounds, each with a higher floor, and leaves no znode of its own", async () => {
    await finished("job");
    await manyFinished(2_500, makeToken({ era: 0, generation: 1n, sequence: 1 }).text);
    const floors = new Set<string | undefined>();
    const onProgress = ({ floorText }: { floorText: string | undefined }) => floors.add(floorText);
    const { dropped } = await run({ roundFences: 500, onProgress });
    expect(dropped).toBe(2_501);
    floors.delete(undefined);
    expect(floors.size).toBeGreaterThan(1);
    const session = await zookeeper.session(Deadline.after(10_000, zookeeper.clock));
    expect((await session.list(root)).children).toEqual(["claims"]);
  });
});

describe("fencekeeper compact", () => {
  it("says first what it would remove, and removes it with --apply", async () => {
    await finished("done");
    await finished("with result", "the result");
    const dry = await command([]);
    const lines = [
      ...["2  fences met", "1  would be removed: give --apply to do it"],
      ...["1  stay: their results are there (see --with-results)", ""],
    ];
    expect(dry.stdout.toString().split("\n")).toEqual(lines);
    expect(await isThere("done")).toBe(true);
    const applied = await command(["--apply", "--json"]);
    expect(applied.status).toBe(0);
    expect(JSON.parse(applied.stdout.toString())).toMatchObject({
      ...{ met: 2, dropped: 1, kept: { result: 1 }, applied: true, complete: true },
    });
    expect(await isThere("done")).toBe(false);
  });

  it("exits with 78 where nobody ever claimed, and with 64 without a server", async () => {
    await manyFinished(1, makeToken({ era: 0, generation: 1n, sequence: 1 }).text);
    const strange = await command(["--apply"]);
    expect(strange.status).toBe(78);
    expect(strange.stdout.toString()).toBe("");
    expect(strange.stderr).toContain("Check --zookeeper and --root");
    expect((await command([], { env: { ZOOKEEPER_CONNECT: undefined } })).status).toBe(64);
  });

  it("leaves a script under `run` its key, where the claim is older than the floor", async () => {
    await finished("other");
    const held = await worker("long");
    await finished("other");
    await run();
    const env = {
      REDIS_URL: redis.url,
      FENCEKEEPER_JOB: "long",
      FENCEKEEPER_TOKEN: held.token.text,
    };
    const args = ["commit", "--root", root, "--key", "{other}:fresh", "--quiet"];
    const live = await cli(args, { env, input: "from a live claim" });
    expect(live).toMatchObject({ status: 0, stderr: "" });
    await held.release();
    const script = `echo part | "${process.execPath}" "${MAIN}" commit --key "{other}:part"`;
    const under = await cli(["run", "long", "--root", root, "--", "sh", "-c", script], { env });
    expect(under.status).toBe(0);
    const late = await cli([...args.slice(0, -3), "--key", "{other}:another"], {
      env,
      input: "late",
    });
    expect(late.status).toBe(76);
    expect((await sink.readResult("{other}:another")).value).toBeUndefined();
  });

  it(`bounds the fences of ${JOBS} finished jobs by those that live, also when it was killed in the middle`, {
    timeout: 120_000 + JOBS / 2,
  }, async () => {
    const old = await finished("done:1");
    await finished("done:2");
    const last = await finished("done:1");
    await manyFinished(JOBS, last.token.text);
    const live = await Promise.all(Array.from({ length: 20 }, (_, n) => worker(`live:${n}`)));
    const all = await count("DBSIZE");
    expect(all).toBe(JOBS + live.length);

    const first = startCli(["compact", "--apply", "--root", root], {
      env: { REDIS_URL: redis.url },
    });
    // floors come first, then fences go
    let most = 0;
    const removing = async () => {
      const keys = await count("DBSIZE");
      most = Math.max(most, keys);
      expect(keys).toBeLessThan(most - JOBS / 10);
    };
    await vi.waitFor(removing, { timeout: 60_000 + JOBS / 4, interval: 20 });
    first.signal("SIGKILL");
    expect((await first.ended).signal).toBe("SIGKILL");
    expect(await countFences()).toBeGreaterThan(live.length);

    const second = await command(["--apply", "--json"]);
    expect(second.status).toBe(0);
    expect(JSON.parse(second.stdout.toString()).kept).toMatchObject({
      live: live.length,
      floor: 0,
    });
    expect(await countFences()).toBe(live.length);
    for (const job of ["done:1", `done:${JOBS}`]) {
      const late = { key: job, job, token: old.token, value: "late" };
      expect(await sink.commitResult(late)).toMatchObject({ outcome: "stale" });
    }
    for (const held of live) {
      const answer = await sink.commitResult({ ...identity(held), value: "live" });
      expect(answer).toMatchObject({ outcome: "committed" });
      await held.release();
    }
  });
});

/** All keys less the floors, of which there is one for each slot at most. */
async function countFences(): Promise<number> {
  const script = `
    local cursor, fences = '0', 0
    repeat
      local page = redis.call('SCAN', cursor, 'MATCH', 'fence:*', 'COUNT', '100000')
      cursor, fences = page[1], fences + #page[2]
    until cursor == '0'
    return fences`;
  return count("EVAL", script, "0");
}
