/**
 * Goal: the one-call recipe keeps its order (claim, fence, work, commit, release) and answers with values.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { ClaimLostError } from "../../lib/errors.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { Sink } from "../../lib/sink.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type FencedRunOptions, fencedRun, type Handler } from "../../recipes/fenced-run.js";
import { contendersOf, withSession } from "../support/raw-zookeeper.js";

let zookeeper: ZooKeeper;
let sink: Sink;
let job: string;
let key: string;

beforeAll(() => {
  zookeeper = new ZooKeeper({ connect: inject("zookeeper") });
  sink = openRedisSink({ url: inject("redis") });
});
afterAll(async () => {
  await Promise.all([zookeeper.close(), sink.close()]);
});
beforeEach(() => {
  job = `job-${randomUUID()}`;
  key = `key-${job}`;
});

const run = (handler: Handler, options: Partial<FencedRunOptions> = {}) =>
  fencedRun({ zookeeper, job, result: { sink, key }, ...options }, handler);
const value = async () => (await sink.readResult(key)).value?.toString();

describe("fencedRun", () => {
  it("commits what the handler returns, under the claim's token, and releases the claim", async () => {
    const answer = await run(async () => "the result");
    expect(answer).toMatchObject({ outcome: "committed", revision: 1 });
    const read = await sink.readResult(key);
    expect(read.value?.toString()).toBe("the result");
    expect(read.matches).toBe(true);
    expect(read.fence).toMatchObject({ job, state: "committed" });
    expect("token" in answer && answer.token.text).toBe(read.fence?.tokenText);
    expect(await contendersOf(job)).toEqual([]);
  });

  it("has raised the fence before the handler starts, so that an older write is refused from then on", async () => {
    const older = await run(async () => undefined);
    if (!("token" in older)) throw new Error("the first run had no token");
    let early: unknown;
    await run(async () => {
      early = await sink.commitResult({ key, job, token: older.token, value: "late" });
      return "newer";
    });
    expect(early).toMatchObject({ outcome: "stale" });
    expect(await value()).toBe("newer");
  });

  it("commits nothing when the handler returns undefined, and when it throws, and releases in both cases", async () => {
    expect(await run(async () => undefined)).toMatchObject({ outcome: "done" });
    await expect(
      run(async () => {
        throw new Error("the work failed");
      }),
    ).rejects.toThrow("the work failed");
    expect(await value()).toBeUndefined();
    expect(await contendersOf(job)).toEqual([]);
  });

  it("is busy while somebody else is at it, and the handler does not run", async () => {
    let second: unknown;
    await run(async () => {
      second = await run(async () => "second");
      return "first";
    });
    expect(second).toMatchObject({ outcome: "busy", ahead: 1 });
    expect(await value()).toBe("first");
  });

  it("takes a result that is there already where the caller accepts one, and runs where it does not", async () => {
    await run(async () => "first");
    const accept = (how: "any" | { maxAgeMs: number }) =>
      run(async () => "again", { result: { sink, key, accept: how } });
    expect(await accept("any")).toMatchObject({ outcome: "present", present: { revision: 1 } });
    expect(await accept({ maxAgeMs: 3_600_000 })).toMatchObject({ outcome: "present" });
    expect(await value()).toBe("first");
    expect(await accept({ maxAgeMs: 0 })).toMatchObject({ outcome: "committed" });
    expect(await value()).toBe("again");
  });

  it("tells the handler of a lost claim through its signal, and writes nothing afterwards", async () => {
    const answer = await run(async (claim) => {
      const told = new Promise<void>((resolve) => {
        claim.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await withSession((session) => session.delete(claim.path));
      await told;
      return "too late";
    });
    expect(answer).toMatchObject({ outcome: "lost", error: { reason: "deleted" } });
    expect(await value()).toBeUndefined();
  });

  it("is lost, not failed, when a handler that was told to stop throws", async () => {
    const answer = await run(async (claim) => {
      // listened to before the znode is deleted: the news may be here before the deleting session is closed
      const stopped = new Promise((_resolve, reject) => {
        claim.signal.addEventListener("abort", () => reject(claim.signal.reason), { once: true });
      });
      stopped.catch(() => {}); // awaited below, perhaps after it has rejected
      await withSession((session) => session.delete(claim.path));
      await stopped;
      return "never";
    });
    expect(answer).toMatchObject({ outcome: "lost" });
    expect("error" in answer && answer.error).toBeInstanceOf(ClaimLostError);
  });

  it("does not start the handler for a key that belongs to another job", async () => {
    await run(async () => "mine");
    const answer = await run(async () => "theirs", { job: `other-${job}` });
    expect(answer).toMatchObject({ outcome: "foreign", owner: job });
    expect(await value()).toBe("mine");
  });

  it("does not start the handler under a token below the fence, as after a ZooKeeper was rebuilt", async () => {
    await run(async () => "newer", { era: 1 });
    expect(await run(async () => "older")).toMatchObject({ outcome: "stale" });
    expect(await value()).toBe("newer");
  });

  it("gives up by the caller's signal until the handler has started", async () => {
    const reason = new Error("changed my mind");
    await expect(run(async () => "never", { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(await contendersOf(job)).toEqual([]);
  });

  it("runs without a result too: a claim around some work", async () => {
    const { result: _unused, ...bare } = { zookeeper, job, result: undefined };
    expect(await fencedRun(bare, async () => undefined)).toMatchObject({ outcome: "done" });
  });
});
