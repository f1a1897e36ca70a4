/**
 * Goal: the doctor finds each hazard on servers that were set up wrong on purpose, finds none on the recommended
 * set-up, and says what it was not allowed to see. Method: real servers, the library and the built command line.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { makeToken } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { type DiagnoseOptions, diagnose } from "../../recipes/doctor/diagnose.js";
import { type Finding, worstOf } from "../../recipes/doctor/finding.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { cli } from "../support/cli.js";
import { Ensemble } from "../support/ensemble.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { withSession } from "../support/raw-zookeeper.js";
import {
  freePort,
  startRedis,
  type TestRedis,
  type TestRedisOptions,
} from "../support/redis-for-test.js";
import { makeReadOnly } from "../support/zookeeper-acl.js";

const DOCKER = fileURLToPath(new URL("../../docker", import.meta.url));

/** The settings of a configuration file of ours, as arguments; where its data are is the test's choice. */
function argumentsOf(file: string): string[] {
  const lines = readFileSync(`${DOCKER}/${file}`, "utf8").split("\n");
  const settings = lines.filter((line) => line !== "" && !/^(?:#|dir |protected-mode )/.test(line));
  return settings.flatMap((line) => {
    const [name = "", ...values] = line.split(" ");
    return [`--${name}`, values.join(" ").replaceAll('"', "")];
  });
}

async function withRedis<T>(
  args: string[],
  use: (redis: TestRedis) => Promise<T>,
  more: Pick<TestRedisOptions, "source"> = {},
): Promise<T> {
  const redis = await startRedis({ args, ...more });
  try {
    return await use(redis);
  } finally {
    await redis.stop();
  }
}

/** The finding of one check, which has to be there. */
function findingOf(findings: Finding[], check: string, about = "redis"): Finding {
  const found = findings.find((finding) => finding.check === check && finding.about === about);
  if (found === undefined) throw new Error(`no finding of ${check} in ${JSON.stringify(findings)}`);
  return found;
}

const levelsOf = (findings: Finding[]) =>
  Object.fromEntries(findings.map(({ about, check, level }) => [`${about} ${check}`, level]));

/** All findings that call for action. */
const hazardsOf = (findings: Finding[]) =>
  findings.filter(({ level }) => level === "warning" || level === "broken");

const lookAt = (url: string, more: Partial<DiagnoseOptions> = {}) =>
  diagnose({ redis: { url }, ...more });

function tokenOf(generation: bigint, era = 0) {
  return makeToken({ era, generation, sequence: 0 });
}

async function commit(url: string, key: string, token = tokenOf(1n), ttlMs?: number) {
  const sink = openRedisSink({ url });
  try {
    const more = ttlMs === undefined ? {} : { ttlMs };
    return await sink.commitResult({ key, job: key, token, value: "result", ...more });
  } finally {
    await sink.close();
  }
}

/** A way to a ZooKeeper that answers no four-letter word, as most servers do for most words. */
async function muteFront(connect: string): Promise<AsyncDisposable & { connect: string }> {
  const [host = "", port = ""] = connect.split(":");
  const sockets = new Set<Socket>();
  const front = createServer((client) => {
    sockets.add(client.on("error", () => {}));
    client.once("data", (first) => {
      const word = first.toString();
      if (/^[a-z]{4}$/.test(word)) {
        client.end(`${word} is not executed because it is not in the whitelist.\n`);
        return;
      }
      const server = createConnection({ host, port: Number(port) });
      sockets.add(server.on("error", () => {}));
      server.write(first);
      client.pipe(server).pipe(client);
    });
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  return {
    connect: `127.0.0.1:${(front.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => front.close(resolve));
    },
  };
}

describe("the doctor at a Redis", () => {
  it("finds nothing to do at the Redis that is recommended", async () => {
    await withRedis(argumentsOf("redis/redis.persistent.conf"), async ({ url }) => {
      await commit(url, "key");
      const findings = await lookAt(url);
      expect(hazardsOf(findings)).toEqual([]);
      expect(findingOf(findings, "reachable", "zookeeper")).toMatchObject({
        level: "note",
        seen: false,
      });
      expect(findingOf(findings, "rights").level).toBe("well");
    });
  });

  it("says of the Redis for trying things that it keeps little, and nothing else", async () => {
    await withRedis(
      ["--appendonly", "no", ...argumentsOf("redis/redis.conf"), "--save", "60 1000"],
      async ({ url }) => {
        const findings = hazardsOf(await lookAt(url));
        expect(levelsOf(findings)).toEqual({ "redis persistence": "warning" });
      },
    );
  });

  it("finds eviction, lacking persistence and a memory that is full", async () => {
    const args = ["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru", "--appendonly", "no"];
    await withRedis(args, async ({ url }) => {
      await rawRedisAt(url, "SET", "large", "x".repeat(1_500_000));
      await rawRedisAt(url, "SET", "larger", "x".repeat(1_000_000));
      const findings = await lookAt(url);
      expect(levelsOf(hazardsOf(findings))).toMatchObject({
        "redis eviction": "broken",
        "redis persistence": "broken",
      });
      expect(findingOf(findings, "eviction").found).toBe("allkeys-lru, maxmemory 3.0 MiB");
      expect(findingOf(findings, "persistence").fix).toContain("appendonly yes");
      expect(findingOf(findings, "memory").found).toMatch(/^\d+ % of 3.0 MiB used$/);
    });
  });

  it("warns of an append-only file that is written to disk later", async () => {
    await withRedis(["--appendfsync", "everysec"], async ({ url }) => {
      const findings = await lookAt(url);
      expect(levelsOf(hazardsOf(findings))).toEqual({ "redis appendfsync": "warning" });
    });
  });

  it("knows a replica, and warns of a primary that accepts writes alone", async () => {
    const program = { source: "programs" } as const;
    await withRedis(
      argumentsOf("redis/redis.persistent.conf"),
      async (primary) => {
        const args = ["--replicaof", primary.host, String(primary.port)];
        await withRedis(
          args,
          async (replica) => {
            const findings = await lookAt(replica.url);
            expect(findingOf(findings, "role")).toMatchObject({ level: "broken" });
            await expect
              .poll(async () => findingOf(await lookAt(primary.url), "replicas").found, {
                timeout: 30_000,
              })
              .toMatch(/^1 of 1 replica in sync, at most \d+ bytes behind$/);
            expect(levelsOf(hazardsOf(await lookAt(primary.url)))).toEqual({
              "redis min-replicas": "warning",
            });
            await rawRedisAt(primary.url, "CONFIG", "SET", "min-replicas-to-write", "1");
            expect(hazardsOf(await lookAt(primary.url))).toEqual([]);
          },
          program,
        );
        await expect
          .poll(async () => findingOf(await lookAt(primary.url), "min-replicas").level, {
            timeout: 30_000,
          })
          .toBe("broken");
      },
      program,
    );
  });

  it("calls a server that is down or does not let us in broken, and ends with 2", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const findings = await lookAt(url, { redis: { url, timeoutMs: 500 } });
    expect(findingOf(findings, "reachable")).toMatchObject({ level: "broken", seen: true });
    await withRedis(["--requirepass", "secret"], async (redis) => {
      const [denied] = await lookAt(redis.url);
      expect(denied).toMatchObject({ check: "reachable", level: "broken" });
      expect(denied?.found).toContain("NOAUTH");
      const right = await lookAt(redis.url.replace("//", "//:secret@"));
      expect(findingOf(right, "reachable").level).toBe("well");
    });
  });

  describe("with a user of few rights", () => {
    let redis: TestRedis;
    const as = (user: string) => redis.url.replace("//", `//${user}:password@`);

    beforeAll(async () => {
      redis = await startRedis({ args: argumentsOf("redis/redis.persistent.conf") });
      const rights = [
        "+@scripting",
        "+@read",
        "+@write",
        "+@connection",
        "+info",
        "+time",
        "+acl|whoami",
      ];
      const user = (name: string, ...more: string[]) =>
        rawRedisAt(redis.url, "ACL", "SETUSER", name, "on", ">password", ...more);
      await user("enough", ...rights, "~app:*", "~fence:*", "~fence-floor:*", "~fence-stage:*");
      await user("short", ...rights, "-hset", "-persist", "~*");
      await user("blind", "+@scripting", "+@read", "+@write", "~*");
    });

    afterAll(() => redis.stop());

    it("falls back to what INFO says, and names what it was not shown", async () => {
      const findings = await lookAt(as("enough"), { key: "app:report" });
      expect(findingOf(findings, "eviction").found).toBe("noeviction");
      expect(findingOf(findings, "persistence").found).toBe("append-only file");
      expect(findingOf(findings, "rights").level).toBe("well");
      expect(hazardsOf(findings)).toMatchObject([{ check: "appendfsync", seen: false }]);
    });

    it("asks the server whether the scripts' commands are allowed, without running them", async () => {
      const findings = await lookAt(as("short"), { key: "report" });
      const { level, found, fix } = findingOf(findings, "rights");
      expect(level).toBe("broken");
      expect(found).toMatch(/^user "short" may not run .* \(for the result key "report"\)$/);
      expect(found).toContain("PERSIST on its fence");
      expect(found).toContain("HSET on its fence");
      expect(fix).toMatch(/\+persist .*\+hset|\+hset .*\+persist/);
      const foreign = await lookAt(as("enough"), { key: "other:report" });
      expect(findingOf(foreign, "rights").level).toBe("broken");
      const unknown = await lookAt(as("enough"));
      expect(findingOf(unknown, "rights")).toMatchObject({ level: "warning" });
    });

    it("tells of the fences that it was not allowed to look at, and judges the others", async () => {
      await commit(redis.url, "app:report");
      const all = findingOf(await lookAt(as("enough")), "fences");
      expect([all.level, all.found]).toEqual(["well", "1 fence, all looked at"]);
      await commit(redis.url, "other:report");
      const findings = await lookAt(as("enough"));
      expect(findingOf(findings, "fences")).toMatchObject({ level: "warning", seen: false });
      expect(findingOf(findings, "fences").found).toContain("1 of 2 fences");
      expect(findingOf(findings, "results").level).toBe("well");
      expect(findingOf(findings, "rights").level).toBe("well");
    });

    it("says of each check that it could not make that it was not seen", async () => {
      const findings = await lookAt(as("blind"), { key: "report" });
      for (const check of ["version", "role", "eviction", "persistence", "disk-writes", "memory"]) {
        expect(findingOf(findings, check), check).toMatchObject({ level: "warning", seen: false });
      }
      expect(findingOf(findings, "clock")).toMatchObject({ level: "note", seen: false });
      // its right to read and to write does not hold TIME
      expect(findingOf(findings, "rights").found).toContain("user may not run TIME (");
      expect(worstOf(findings)).toBe("broken");
    });
  });

  it("finds fences that expire, are corrupt or foreign, and results that nobody committed", async () => {
    await withRedis(argumentsOf("redis/redis.persistent.conf"), async ({ url }) => {
      for (const key of ["good", "expires", "gone", "kept", "overwritten", "broken"]) {
        await commit(url, key, tokenOf(1n), key === "kept" ? 3_600_000 : undefined);
      }
      expect(hazardsOf(await lookAt(url))).toEqual([]);
      await rawRedisAt(url, "EXPIRE", "fence:{expires}", "1000000");
      expect(findingOf(await lookAt(url), "fence-ttl")).toMatchObject({
        level: "broken",
        found: '1 fence that will expire before the result: "fence:{expires}"',
      });
      await rawRedisAt(url, "DEL", "expires");
      expect(findingOf(await lookAt(url), "fence-ttl").level).toBe("note");
      await rawRedisAt(url, "EXPIRE", "fence:{kept}", "7200");
      expect(findingOf(await lookAt(url), "fence-ttl").level).toBe("warning");
      await rawRedisAt(url, "SET", "overwritten", "legacy");
      await rawRedisAt(url, "HSET", "fence:{broken}", "token", "7");
      await rawRedisAt(url, "SET", "fence:", "of nobody");
      const findings = await lookAt(url);
      expect(findingOf(findings, "results")).toMatchObject({
        level: "broken",
        found: '1 result that nobody committed: "overwritten"',
      });
      expect(findingOf(findings, "fence-form")).toMatchObject({ level: "broken" });
      expect(findingOf(findings, "fence-form").found).toContain('"fence:{broken}"');
    });
  });

  it("judges a node of a cluster by the slots that somebody serves", async () => {
    const args = [...argumentsOf("redis/redis.persistent.conf"), "--cluster-enabled", "yes"];
    await withRedis(args, async ({ url }) => {
      expect(findingOf(await lookAt(url), "cluster").level).toBe("broken");
      await rawRedisAt(url, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
      await expect
        .poll(async () => findingOf(await lookAt(url), "cluster").level, { timeout: 30_000 })
        .toBe("well");
      await commit(url, "key");
      expect(levelsOf(hazardsOf(await lookAt(url)))).toEqual({
        "redis cluster-replicas": "warning",
      });
    });
  });

  it("tells how far it looked", async () => {
    await withRedis([], async ({ url }) => {
      await rawRedisAt(url, "EVAL", "for i = 1, 3000 do redis.call('SET', 'k' .. i, 1) end", "0");
      const findings = await lookAt(url, { scanKeys: 400 });
      expect(findingOf(findings, "fences")).toMatchObject({ level: "note" });
      expect(findingOf(findings, "fences").found).toMatch(/in 400 of about 3000 keys/);
      expect(findingOf(await lookAt(url), "fences").level).toBe("well");
    });
  });
});

describe("the doctor at a ZooKeeper", () => {
  let root: string;
  let job: string;

  beforeEach(() => {
    root = `/doctor-${randomUUID()}`;
    job = "job";
  });

  const lookHere = (connect = inject("zookeeper"), more: Partial<DiagnoseOptions> = {}) =>
    diagnose({ zookeeper: { connect }, root, ...more });

  async function makeBelow(...names: string[]): Promise<void> {
    await withSession(async (session) => {
      const path = claimPath(job, root);
      for (const each of [root, `${root}/claims`, path])
        await session.create(each, "", "persistent");
      for (const name of names) await session.create(`${path}/${name}`, "", "persistent");
    });
  }

  it("finds nothing at three servers but what a new ensemble lets strangers do", async () => {
    await using ensemble = await Ensemble.start();
    await ensemble.followers();
    const connect = ensemble.connect;
    const fresh = await lookHere(connect);
    expect(hazardsOf(fresh)).toEqual([]);
    expect(findingOf(fresh, "ensemble", "zookeeper").found).toContain("2 followers in sync");
    const [follower, other] = await ensemble.followers();
    await follower.kill();
    const fewer = findingOf(await lookHere(connect), "servers", "zookeeper");
    expect([fewer.level, fewer.found]).toEqual([
      "warning",
      `2 of 3 servers up: ${follower.connect} does not answer`,
    ]);
    await other.kill();
    const none = await diagnose({ zookeeper: { connect, connectTimeoutMs: 2_000 }, root });
    expect(findingOf(none, "reachable", "zookeeper").level).toBe("broken");
    expect(findingOf(none, "servers", "zookeeper").level).toBe("broken");
    await ensemble.restore();
  });

  it("warns of a single server, and of a session timeout that was not granted", async () => {
    const connect = inject("zookeeper");
    const findings = await lookHere(connect, { zookeeper: { connect, sessionTimeoutMs: 1_000 } });
    expect(levelsOf(hazardsOf(findings))).toEqual({
      "zookeeper servers": "warning",
      "zookeeper session-timeout": "warning",
    });
  });

  it("finds persistent contenders, strangers, and a counter near its end that cannot be made afresh", async () => {
    const contender = `_c_${randomUUID()}-lock-0000000000`;
    await makeBelow(contender, "config", `_c_${randomUUID()}-lock-2147000000`);
    const findings = await lookHere();
    const blocked = findingOf(findings, "blocked-queues", "zookeeper");
    expect([blocked.level, blocked.found]).toEqual(["broken", expect.stringContaining(contender)]);
    expect(findingOf(findings, "foreign-znodes", "zookeeper")).toMatchObject({ level: "warning" });
    expect(findingOf(findings, "counters", "zookeeper")).toMatchObject({ level: "broken" });
  });

  it("reads who may change what, and finds lists that are open to everybody", async () => {
    await makeBelow();
    const open = findingOf(await lookHere(), "access", "zookeeper");
    expect([open.level, open.found]).toEqual(["warning", expect.stringContaining("3 znodes")]);
    for (const path of [claimPath(job, root), `${root}/claims`, root]) await makeReadOnly(path);
    expect(findingOf(await lookHere(), "access", "zookeeper").level).toBe("well");
  });

  it("finds servers of different ensembles in one connection string", async () => {
    const other = await startZooKeeper();
    try {
      const findings = await lookHere(`${inject("zookeeper")},${other.connect}`);
      expect(findingOf(findings, "ensemble", "zookeeper").level).toBe("broken");
    } finally {
      await other.stop();
    }
  });

  it("knows what it needs where four-letter words are not answered", async () => {
    await using front = await muteFront(inject("zookeeper"));
    await withRedis(argumentsOf("redis/redis.persistent.conf"), async ({ url }) => {
      await commit(url, "ahead", tokenOf(2n ** 50n));
      const findings = await lookHere(front.connect, { redis: { url } });
      expect(findingOf(findings, "version", "zookeeper")).toMatchObject({ seen: false });
      expect(findingOf(findings, "ensemble", "zookeeper")).toMatchObject({ seen: false });
      expect(findingOf(findings, "servers", "zookeeper").found).toContain("one server");
      expect(findingOf(findings, "fence-ahead", "both").level).toBe("broken");
    });
  });

  it("finds a fence above everything that ZooKeeper can make, and a later era than the workers'", async () => {
    await withRedis(argumentsOf("redis/redis.persistent.conf"), async ({ url }) => {
      const both = (era = 0) =>
        lookHere(inject("zookeeper"), { redis: { url }, era }).then((findings) =>
          findingOf(findings, "fence-ahead", "both"),
        );
      await commit(url, "usual", tokenOf(1n));
      expect((await both()).level).toBe("well");
      await commit(url, "ahead", tokenOf(2n ** 50n));
      expect(await both()).toMatchObject({ level: "broken", fix: "--era 1 for every worker" });
      expect((await both(1)).level).toBe("well");
      await commit(url, "later", tokenOf(1n, 3));
      expect(await both(1)).toMatchObject({
        level: "broken",
        fix: "--era 3 for every worker, and here",
      });
    });
  });
});

describe("fencekeeper doctor", () => {
  it("prints a table with reasons and remedies, its summary last, and exits with the verdict", async () => {
    await withRedis(["--maxmemory-policy", "allkeys-lru"], async ({ url }) => {
      const { stdout, stderr, status } = await cli(["doctor", "--redis", url], {
        env: { ZOOKEEPER_CONNECT: undefined },
      });
      expect([status, stderr]).toEqual([1, ""]);
      const lines = stdout.toString().trimEnd().split("\n");
      expect(lines.find((line) => line.includes("eviction"))).toMatch(
        /^warning {2}redis {6}eviction {5}allkeys-lru, maxmemory not set$/,
      );
      expect(stdout.toString()).toContain("why: an evicted fence lets an old token in");
      expect(stdout.toString()).toContain("fix: CONFIG SET maxmemory-policy noeviction");
      expect(lines.at(-1)).toMatch(/^0 broken, 2 warnings, .*: the promise holds until/);
      expect(stdout.toString()).not.toContain("\x1b");
    });
  });

  it("gives programs one object, and 2 for what is broken", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const args = ["doctor", "--json", "--redis", url, "--connect-timeout", "1s"];
    const { stdout, status } = await cli(args, { env: { ZOOKEEPER_CONNECT: undefined } });
    expect(status).toBe(2);
    const answer = JSON.parse(stdout.toString());
    expect(answer).toMatchObject({ level: "broken", status: 2 });
    expect(answer.findings).toHaveLength(2);
  });

  it("exits with 64 when no server is named, and for a number that is none", async () => {
    const env = { ZOOKEEPER_CONNECT: undefined, REDIS_URL: undefined };
    expect((await cli(["doctor"], { env })).status).toBe(64);
    expect((await cli(["doctor", "--scan", "all"])).status).toBe(64);
  });
});
