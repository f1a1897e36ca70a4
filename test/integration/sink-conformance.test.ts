/**
 * The same suite on each kind of Redis that the sink is for. Goal: one answer to one question, wherever it is asked;
 * and when a primary dies in the middle, every call ends with the truth. What is tested of one server only is in
 * `sink.test.ts` and its neighbours.
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  FencekeeperError,
  ResultKeyError,
  ResultTypeError,
  SinkOutcomeUnknownError,
} from "../../lib/errors.js";
import { fenceKeyOf, floorKeyOf, resultKeyOf, stageKeyOf } from "../../lib/redis/fence-key.js";
import { type FoundFence, openRedisFences } from "../../lib/redis/fence-store.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import { slotOf } from "../../lib/redis/slot.js";
import { readStaleWrites } from "../../lib/redis/stale-writes.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { diagnose } from "../../recipes/doctor/diagnose.js";
import { chooseSources } from "../../recipes/servers/choose-source.js";
import { startRedis as startServer } from "../../recipes/servers/start-servers.js";
import { startRedis } from "../support/redis-for-test.js";
import { startCluster, startSentinels, type Topology } from "../support/redis-topologies.js";

const START_MS = 120_000;
const SOON = { timeout: 30_000, interval: 20 };
/** Keys that are spread over all nodes of a cluster. */
const SPREAD = 30;

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });

async function single(start: () => ReturnType<typeof startRedis>): Promise<Topology> {
  const server = await start();
  const client = new Redis(server.url);
  return {
    url: server.url,
    primaries: async () => [client],
    killPrimary: () => server.kill(),
    async stop() {
      client.disconnect();
      await server.stop();
    },
  };
}

const usesDocker = chooseSources(undefined, process.env).sources[0] === "docker";

const TOPOLOGIES: [name: string, start: () => Promise<Topology>, runs: boolean][] = [
  ["one server", () => single(() => startRedis()), true],
  [
    "Redis 8, as a container",
    () => single(() => startServer({ images: { redis: "redis:8" } })),
    usesDocker,
  ],
  [
    "Valkey 8, as a container",
    () => single(() => startServer({ images: { redis: "valkey/valkey:8" } })),
    usesDocker,
  ],
  ["Sentinel", startSentinels, true],
  ["a cluster of six nodes", startCluster, true],
];

describe.each(TOPOLOGIES)("%s", (name, start, runs) => {
  let topology: Topology;
  let sink: Sink;
  let run = 0;
  const nextKey = () => `conformance:${process.pid}:${run++}`;

  beforeAll(async () => {
    if (!runs) return;
    topology = await start();
    sink = openRedisSink({ url: topology.url, timeoutMs: 20_000 });
  }, START_MS);
  afterAll(async () => {
    await sink?.close();
    await topology?.stop();
  }, START_MS);

  const open = (options: Partial<RedisSinkOptions>) => {
    const opened = openRedisSink({ url: topology.url, timeoutMs: 20_000, ...options });
    onTestFinished(() => opened.close());
    return opened;
  };

  it.skipIf(!runs)("raises, commits, refuses what is stale, and reads", async () => {
    for (const key of Array.from({ length: SPREAD }, nextKey)) {
      const claim = { key, job: "job", token: token(2), holder: "h" };
      expect(await sink.advanceFence(claim)).toMatchObject({ outcome: "advanced" });
      expect(await sink.commitResult({ ...claim, value: "v" })).toEqual({
        ...{ outcome: "committed", revision: 1 },
      });
      expect(await sink.commitResult({ ...claim, value: "v" })).toMatchObject({
        outcome: "duplicate",
      });
      expect(await sink.commitResult({ ...claim, value: "w" })).toEqual({ outcome: "conflict" });
      const late = { ...claim, token: token(1), value: "late" };
      expect(await sink.commitResult(late)).toMatchObject({ outcome: "stale" });
      expect(await sink.commitResult({ ...late, job: "other" })).toMatchObject({
        outcome: "foreign",
      });
      expect(await sink.invalidateResult({ ...claim, token: token(3) })).toEqual({
        ...{ outcome: "invalidated", found: true },
      });
      const { value, fence } = await sink.readResult(key);
      expect(value).toBeUndefined();
      expect(fence).toMatchObject({ tokenText: token(3).text, staleCount: 1 });
    }
  });

  it.skipIf(!runs)("updates, expires, stages large values and keeps a prefix", async () => {
    const prefixed = open({ keyPrefix: "app:", retentionMs: 900_000 });
    const key = nextKey();
    const claim = { key, job: "job", token: token(1), mode: "update", ttlMs: 500_000 } as const;
    for (const value of ["10%", "20%", "x".repeat(300_000)]) {
      expect(await prefixed.commitResult({ ...claim, value })).toMatchObject({
        outcome: "committed",
      });
    }
    expect(await prefixed.readResult(key)).toMatchObject({ matches: true });
    const reader = open({});
    expect((await reader.readResult(`app:${key}`)).value).toHaveLength(300_000);
  });

  it.skipIf(!runs)("commits several results of one slot in one step, or none", async () => {
    const tag = `{${nextKey()}}`;
    const results = ["a", "b"].map((end) => ({ key: `${tag}${end}`, value: end }));
    const request = { job: "job", token: token(1), results };
    expect(await sink.commitResults(request)).toEqual({
      ...{ outcome: "committed", revisions: [1, 1] },
    });
    const spread = [1, 2, 3, 4].map(() => ({ key: nextKey(), value: "v" }));
    const all = sink.commitResults({ ...request, results: spread });
    if (topology.url.startsWith("redis-cluster")) {
      await expect(all).rejects.toThrow(ResultKeyError);
      for (const { key } of spread) expect((await sink.readResult(key)).value).toBeUndefined();
    } else expect(await all).toMatchObject({ outcome: "committed" });
  });

  it.skipIf(!runs)("meets the fences of all servers, and removes them behind floors", async () => {
    const keys = Array.from({ length: SPREAD }, nextKey);
    for (const key of keys) {
      await sink.advanceFence({ key, job: "job", token: token(2) });
      await sink.advanceFence({ key, job: "job", token: token(1) });
    }
    const stale = await readStaleWrites({ url: topology.url });
    expect(stale.map(({ key }) => key)).toEqual(expect.arrayContaining(keys));
    const fences = openRedisFences({ url: topology.url });
    onTestFinished(() => fences.close());
    const met: (FoundFence | Error)[] = [];
    for await (const page of fences.pages()) met.push(...page);
    const found = { tokenText: token(2).text, job: "job", hasResult: false };
    expect(met).toEqual(expect.arrayContaining(keys.map((key) => ({ key, ...found }))));
    const floorText = token(9).text;
    for (const key of keys) {
      const drop = { key, tokenText: token(2).text, floorText, withResult: false };
      expect(await fences.dropFence(drop)).toBe("floor");
      expect(await fences.raiseFloor(floorKeyOf(key), floorText)).toBe(true);
      expect(await fences.dropFence(drop)).toBe("dropped");
      const late = await sink.commitResult({ key, job: "job", token: token(2), value: "late" });
      expect(late).toEqual({ outcome: "stale", fenceText: floorText });
      const newer = { key, job: "job", token: token(10), value: "newer" };
      expect(await sink.commitResult(newer)).toMatchObject({ outcome: "committed" });
    }
    expect(await fences.raiseFloor(floorKeyOf(keys[0] ?? ""), token(8).text)).toBe(false);
  });

  it.skipIf(!runs || !name.includes("cluster"))(
    "is looked at by the doctor on every primary, which names the one that is not well",
    async () => {
      const keys = Array.from({ length: SPREAD }, nextKey);
      for (const key of keys) {
        await sink.commitResult({ key, job: "job", token: token(1), value: "v" });
        await sink.commitResult({ key, job: "job", token: token(1), value: "v" });
      }
      const primaries = await topology.primaries();
      const [first] = primaries;
      await first?.config("SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru");
      const findings = await diagnose({ redis: { url: topology.url } });
      await first?.config("SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
      const eviction = findings.filter(({ check }) => check === "eviction");
      expect(eviction).toMatchObject([{ level: "broken" }]);
      const { port } = first?.options ?? {};
      expect(eviction[0]?.found).toMatch(new RegExp(`^allkeys-lru.* \\([^,]*:${port}\\)$`));
      const fences = findings.find(({ check }) => check === "fences")?.found ?? "";
      expect(Number(/^\d+/.exec(fences)?.[0])).toBeGreaterThanOrEqual(SPREAD);
    },
  );

  it.skipIf(!runs)("goes on when all servers have forgotten the scripts", async () => {
    for (const primary of await topology.primaries()) await primary.script("FLUSH");
    const keys = Array.from({ length: SPREAD }, nextKey);
    const answers = await Promise.all(
      keys.map((key) => sink.commitResult({ key, job: "job", token: token(1), value: "v" })),
    );
    expect(answers).toEqual(keys.map(() => ({ outcome: "committed", revision: 1 })));
  });

  it.skipIf(!runs)("refuses a key that holds another type, and changes nothing", async () => {
    const key = nextKey();
    for (const primary of await topology.primaries()) {
      await primary.lpush(key, "a").catch(() => {}); // the slot is another node's
    }
    const commit = sink.commitResult({ key, job: "job", token: token(1), value: "v" });
    await expect(commit).rejects.toThrow(ResultTypeError);
  });

  it.skipIf(!runs)("waits for results wherever they are, and leaves no connection", async () => {
    const reader = open({ name: "reader" });
    const keys = Array.from({ length: SPREAD }, nextKey);
    const waits = Promise.all(keys.map((key) => reader.waitFor(key)));
    const primaries = await topology.primaries();
    const flagged = async (flag: string) => {
      const lists = await Promise.all(primaries.map((primary) => primary.client("LIST")));
      const lines = lists.flatMap((list) => String(list).split("\n"));
      return lines.filter((line) => new RegExp(`name=reader .*flags=\\w*${flag}`).test(line))
        .length;
    };
    const eachHas = (there: number) => async () => {
      expect([await flagged("P"), await flagged("t")]).toEqual([there, there]);
    };
    await vi.waitFor(eachHas(primaries.length), SOON);
    for (const key of keys) {
      await sink.commitResult({ key, job: "job", token: token(1), value: key });
    }
    const found = keys.map((key) => ({ outcome: "found", key, value: Buffer.from(key) }));
    expect(await waits).toMatchObject(found);
    await vi.waitFor(eachHas(0), SOON);
  });

  it.skipIf(!runs || !name.match(/Sentinel|cluster/))(
    "ends every call with the truth when a primary dies in the middle, and goes on",
    { timeout: 120_000 },
    async () => {
      const keys = Array.from({ length: SPREAD }, nextKey);
      const safe = open({ durability: { replicas: 1, timeoutMs: 5_000 }, timeoutMs: 30_000 });
      const acknowledged = new Map<string, number>();
      let sequence = 0;
      const commitAll = async () => {
        sequence += 1;
        const round = token(sequence);
        await Promise.all(
          keys.map(async (key) => {
            const value = `${key} ${sequence}`;
            try {
              const answer = await safe.commitResult({ key, job: "job", token: round, value });
              const isKept = "durability" in answer && answer.durability?.reached;
              if (isKept) acknowledged.set(key, round.sequence);
            } catch (error) {
              expect(error).toBeInstanceOf(FencekeeperError);
              const { definite } = error as FencekeeperError;
              expect(definite).toBe(!(error instanceof SinkOutcomeUnknownError));
            }
          }),
        );
      };
      await commitAll();
      expect(acknowledged.size).toBe(SPREAD);
      const newerThan = token(sequence + 1).text;
      const reader = open({});
      const waits = Promise.all(keys.map((key) => reader.waitFor(key, { newerThan })));
      waits.catch(() => {}); // it is looked at below
      const committing = commitAll();
      await topology.killPrimary();
      await committing;
      const after = open({ timeoutMs: 30_000 });
      for (const key of keys) {
        // what a replica had is there, or what was written after it and lost its reply only
        const { value } = await after.readResult(key);
        const kept = Number(value?.toString().split(" ").at(-1));
        expect(kept, key).toBeGreaterThanOrEqual(acknowledged.get(key) ?? Number.NaN);
      }
      sequence += 1;
      for (const key of keys) {
        const request = { key, job: "job", token: token(sequence), value: "after" };
        expect(await after.commitResult(request)).toMatchObject({ outcome: "committed" });
        const late = { ...request, token: token(1), value: "late" };
        expect(await after.commitResult(late)).toMatchObject({ outcome: "stale" });
        expect(await after.readResult(key)).toMatchObject({ matches: true });
      }
      const found = keys.map((key) => ({ outcome: "found", key, value: Buffer.from("after") }));
      expect(await waits).toMatchObject(found);
    },
  );

  it.skipIf(!runs || !name.includes("cluster"))(
    "has the keys beside a result in its slot, by the real slot function",
    async () => {
      const [node] = await topology.primaries();
      const key = fc.string({ unit: fc.constantFrom(..."{}:ab é🔑"), minLength: 1, maxLength: 9 });
      const property = fc.asyncProperty(
        key,
        fc.constantFrom("", "app:", "{app}:"),
        async (k, p) => {
          let fence: string;
          try {
            fence = fenceKeyOf(p + k);
          } catch (error) {
            expect(error).toBeInstanceOf(ResultKeyError);
            return;
          }
          const beside = [p + k, fence, floorKeyOf(p + k), stageKeyOf(p + k, "1")];
          const slots = await Promise.all(beside.map((each) => node?.cluster("KEYSLOT", each)));
          expect(new Set(slots)).toEqual(new Set([slotOf(p + k)]));
          expect(resultKeyOf(fence)).toBe(p + k);
        },
      );
      await fc.assert(property, { numRuns: 500 });
    },
  );

  it.skipIf(!runs || !name.includes("cluster"))(
    "goes on waiting when a slot in which there is nothing yet has moved to another node",
    async () => {
      const key = nextKey();
      const slot = slotOf(key);
      const primaries = await topology.primaries();
      const owner = async () => {
        const asked = primaries.map((node) => node.type(key).catch(() => undefined)); // it is another node's
        return (await Promise.all(asked)).findIndex((type) => type !== undefined);
      };
      const from = await owner();
      const source = primaries[from];
      const [target] = primaries.filter((node) => node !== source);
      const reader = open({ name: "mover", replyTimeoutMs: 500 });
      const wait = reader.waitFor(key);
      const watched = async (at: Redis | undefined) =>
        expect(await at?.client("LIST")).toMatch(/name=mover .*flags=\w*t.* cmd=type/);
      await vi.waitFor(() => watched(source), SOON);
      const id = String(await target?.cluster("MYID"));
      // as a real move, or other nodes take the old owner's word; last, because it may hold up a failover
      await target?.cluster("SETSLOT", slot, "IMPORTING", String(await source?.cluster("MYID")));
      await source?.cluster("SETSLOT", slot, "MIGRATING", id);
      for (const node of [target, ...primaries]) await node?.cluster("SETSLOT", slot, "NODE", id);
      await vi.waitFor(() => watched(target), SOON);
      await sink.commitResult({ key, job: "job", token: token(1), value: "moved" });
      expect(await wait).toMatchObject({ outcome: "found", value: Buffer.from("moved") });
    },
  );
});
