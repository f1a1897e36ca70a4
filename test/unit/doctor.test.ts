/**
 * Goal: what the doctor makes of what it sees is right. Method: tables of facts in and of levels out, without servers.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ResultKeyError } from "../../lib/errors.js";
import { fenceKeyOf, resultKeyOf } from "../../lib/redis/fence-key.js";
import { scriptText, WRITE_SCRIPTS } from "../../lib/redis/script-files.js";
import { describeFindings, summaryOf } from "../../recipes/cli/diagnosis.js";
import { type Finding, type Level, Unseen, worstOf } from "../../recipes/doctor/finding.js";
import { judgeTokens, judgeZxid } from "../../recipes/doctor/judge-tokens.js";
import { clusterOf, judgeCluster } from "../../recipes/doctor/redis/cluster.js";
import { judgeDurability } from "../../recipes/doctor/redis/durability.js";
import { type FenceLook, judgeFences } from "../../recipes/doctor/redis/fences.js";
import { judgeRedis } from "../../recipes/doctor/redis/judge-redis.js";
import { judgeMemory } from "../../recipes/doctor/redis/memory.js";
import {
  parseInfo,
  type RedisFacts,
  SETTINGS,
  type Setting,
} from "../../recipes/doctor/redis/redis-facts.js";
import { judgeReplication, replicasOf } from "../../recipes/doctor/redis/replication.js";
import { judgeRights, NEEDED } from "../../recipes/doctor/redis/rights.js";
import { judgeAccess } from "../../recipes/doctor/zookeeper/access.js";
import { type ClaimPathLook, judgeClaimPaths } from "../../recipes/doctor/zookeeper/claim-paths.js";
import { judgeServers, type ServerLook, serverOf } from "../../recipes/doctor/zookeeper/servers.js";

const DENIED = new Unseen("denied");

function factsOf(
  info: Record<string, string | number> | Unseen,
  settings: Partial<Record<Setting, string>> | Unseen = {},
): RedisFacts {
  const set = settings instanceof Unseen ? {} : settings;
  const all = SETTINGS.map((name) => [name, set[name] ?? DENIED]);
  const text = Object.entries(info).map(([name, value]) => `${name}:${value}\r\n`);
  return {
    info: info instanceof Unseen ? info : parseInfo(`# Section\r\n${text.join("")}`),
    settings: Object.fromEntries(all) as RedisFacts["settings"],
    clockAheadMs: 0,
    cluster: undefined,
    rights: { user: "default", key: "key", keyIsTheirs: true, denied: [] },
  };
}

const levelOf = (findings: Finding[], check: string): Level | "not seen" | undefined => {
  const finding = findings.find((each) => each.check === check);
  return finding?.seen === false ? "not seen" : finding?.level;
};

describe("the judgement of a Redis", () => {
  it.each<[policy: string, maxmemory: string, level: Level]>([
    ["noeviction", "0", "well"],
    ["noeviction", "1000", "well"],
    ["allkeys-lru", "1000", "broken"],
    ["allkeys-random", "0", "warning"],
    ["volatile-ttl", "1000", "warning"],
    ["volatile-lru", "0", "warning"],
  ])(
    "calls the policy %s with a maxmemory of %s %s, by CONFIG or by INFO",
    (policy, max, level) => {
      const byConfig = factsOf({}, { "maxmemory-policy": policy, maxmemory: max });
      const byInfo = factsOf({ maxmemory_policy: policy, maxmemory: max }, DENIED);
      expect(levelOf(judgeMemory(byConfig), "eviction")).toBe(level);
      expect(levelOf(judgeMemory(byInfo), "eviction")).toBe(level);
    },
  );

  it.each<[used: number, level: Level]>([
    [100, "well"],
    [899, "well"],
    [900, "warning"],
    [1_000, "broken"],
  ])("calls %i used of 1000 bytes %s", (used, level) => {
    const facts = factsOf({
      used_memory: used + 7,
      mem_not_counted_for_evict: 7,
      maxmemory: 1_000,
    });
    expect(levelOf(judgeMemory(facts), "memory")).toBe(level);
  });

  it.each<[appendonly: string, save: string, level: Level]>([
    ["yes", "", "well"],
    ["yes", "60 1", "well"],
    ["no", "60 1", "warning"],
    ["no", "", "broken"],
  ])("calls appendonly %s with save %j %s", (appendonly, save, level) => {
    expect(levelOf(judgeDurability(factsOf({}, { appendonly, save })), "persistence")).toBe(level);
  });

  it.each<[appendfsync: string, level: Level]>([
    ["always", "well"],
    ["everysec", "warning"],
    ["no", "warning"],
  ])("calls appendfsync %s %s", (appendfsync, level) => {
    const facts = factsOf({}, { appendonly: "yes", appendfsync });
    expect(levelOf(judgeDurability(facts), "appendfsync")).toBe(level);
  });

  it.each<[name: string, aof: number, level: Level]>([
    ["aof_last_write_status", 1, "broken"],
    ["aof_last_write_status", 0, "well"],
    ["aof_last_bgrewrite_status", 1, "warning"],
    ["rdb_last_bgsave_status", 1, "warning"],
    ["rdb_last_bgsave_status", 0, "broken"],
  ])("calls %s err with aof_enabled %i %s", (name, aof, level) => {
    const facts = factsOf({ [name]: "err", aof_enabled: aof });
    expect(levelOf(judgeDurability(facts), "disk-writes")).toBe(level);
  });

  it("reads the replicas out of INFO, and judges those that are behind", () => {
    const info = {
      role: "master",
      master_repl_offset: 500,
      connected_slaves: 2,
      slave0: "ip=10.0.0.2,port=6379,state=online,offset=490,lag=0",
      slave1: "ip=10.0.0.3,port=6380,state=online,offset=100,lag=60",
    };
    const facts = factsOf(info, { "min-replicas-to-write": "1" });
    expect(replicasOf(parseInfo("slave0:ip=h,port=1,state=wait_bgsave,offset=0,lag=0"))).toEqual([
      { place: "h:1", online: false, behindBytes: 0, lagS: 0 },
    ]);
    const [, replicas, wanted] = judgeReplication(facts);
    expect(replicas).toMatchObject({ level: "warning", fix: "look after 10.0.0.3:6380" });
    expect(replicas?.found).toBe("1 of 2 replicas in sync, at most 400 bytes behind");
    expect(wanted).toMatchObject({ check: "min-replicas", level: "well" });
    expect(levelOf(judgeReplication(factsOf(info, DENIED)), "min-replicas")).toBe("warning");
  });

  it("judges a cluster by its slots, and by primaries that nobody copies", () => {
    const nodes = [
      "aaa 10.0.0.1:6379@16379,one myself,master - 0 0 1 connected 0-8191",
      "bbb 10.0.0.2:6379@16379 master - 0 0 2 connected 8192-16383",
      "ccc 10.0.0.3:6379@16379 slave aaa 0 0 1 connected",
      "ddd 10.0.0.4:6379@16379 slave,fail bbb 0 0 2 disconnected",
      "eee 10.0.0.5:6379@16379 master - 0 0 3 connected",
    ].join("\n");
    const whole = judgeCluster(clusterOf("cluster_state:ok\r\ncluster_slots_ok:16384\r\n", nodes));
    expect(levelOf(whole, "cluster")).toBe("well");
    expect(whole[1]).toMatchObject({
      level: "warning",
      found: '1 primary without a replica: "10.0.0.2:6379"',
    });
    const holed = clusterOf("cluster_state:ok\r\ncluster_slots_ok:16383\r\n", nodes);
    expect(levelOf(judgeCluster(holed), "cluster")).toBe("broken");
    expect(levelOf(judgeCluster(DENIED), "cluster")).toBe("not seen");
  });

  it("asks for the commands that the scripts of the sink run, and for what sends them", () => {
    const scripts = [...WRITE_SCRIPTS, "readResult" as const].map(scriptText).join("\n");
    const names = [...scripts.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, name]) => name);
    const needed = NEEDED.map(({ command }) => command);
    expect(new Set(needed)).toEqual(new Set([...names, "EVAL", "EVALSHA"]));
  });

  it("takes what is not allowed for broken only where the key is the user's own", () => {
    const rights = { user: "u", key: "k", denied: [{ command: "SET", on: "result" as const }] };
    expect(judgeRights({ ...rights, keyIsTheirs: true }).level).toBe("broken");
    expect(judgeRights({ ...rights, keyIsTheirs: false }).level).toBe("warning");
    expect(judgeRights(DENIED)).toMatchObject({ level: "warning", seen: false });
  });

  it.each<[version: string, level: Level]>([
    ["6.0.16", "broken"],
    ["6.2.0", "well"],
    ["7.2.4", "well"],
    ["10.0.0", "well"],
  ])("calls Redis %s %s", (version, level) => {
    expect(levelOf(judgeRedis(factsOf({ redis_version: version })), "version")).toBe(level);
  });

  it("makes a note of a clock that is minutes away", () => {
    const at = (clockAheadMs: number) =>
      judgeRedis({ ...factsOf({}), clockAheadMs }).find(({ check }) => check === "clock");
    expect(at(-100_000)?.level).toBe("well");
    expect(at(300_000)).toMatchObject({ level: "note", found: "300 s ahead of the clock here" });
  });

  it("finds nothing well that it did not see", () => {
    const findings = judgeRedis({
      ...factsOf(DENIED, DENIED),
      clockAheadMs: DENIED,
      rights: DENIED,
    });
    expect(findings.every(({ seen, level }) => !seen && level !== "well")).toBe(true);
  });
});

describe("the judgement of fences", () => {
  const look = (more: Partial<FenceLook> = {}): FenceLook => ({
    fenceKey: "fence:{k}",
    key: "k",
    tokenText: "00000.00000000000000000007.0000000000",
    fault: undefined,
    ttlMs: undefined,
    resultTtlMs: undefined,
    matches: true,
    ...more,
  });
  const judge = (...looks: FenceLook[]) =>
    judgeFences({
      ...{ looks, scanned: 10, keys: 10, stopped: undefined, large: 0 },
      hidden: { count: 0, reason: "" },
    });

  it.each<[what: string, look: FenceLook, level: Level]>([
    ["without a TTL", look(), "well"],
    ["that goes before a result for ever", look({ ttlMs: 10 ** 10 }), "broken"],
    ["that goes before its result", look({ ttlMs: 5, resultTtlMs: 6 }), "broken"],
    ["that outlives its result by little", look({ ttlMs: 7, resultTtlMs: 6 }), "warning"],
    ["that goes soon, without a result", look({ ttlMs: 7, matches: undefined }), "warning"],
    ["that is kept long", look({ ttlMs: 10 ** 9, resultTtlMs: 6 }), "note"],
  ])("calls a fence %s as it is", (_what, one, level) => {
    expect(levelOf(judge(one), "fence-ttl")).toBe(level);
  });

  it("names a few of many, and what could not be read", () => {
    const many = Array.from({ length: 5 }, (_, at) => look({ key: `k${at}`, matches: false }));
    const found = judge(...many).find(({ check }) => check === "results")?.found;
    expect(found).toBe('5 results that nobody committed: "k0", "k1", "k2" and 2 more');
    const hidden = { count: 2, reason: "NOPERM" };
    const facts = { looks: [], scanned: 10, keys: 10, stopped: undefined, large: 0, hidden };
    expect(judgeFences(facts).map(({ seen, level }) => `${level} ${seen}`)).toEqual([
      "warning false",
      "note false",
      "note false",
      "note false",
    ]);
    const some = judgeFences({ ...facts, looks: [look()] });
    expect(levelOf(some, "fences")).toBe("not seen");
    expect(levelOf(some, "results")).toBe("well");
  });

  it.each<[era: number, zxid: bigint | Unseen, level: Level | "not seen"]>([
    [0, 7n, "well"],
    [0, 6n, "broken"],
    [1, 6n, "well"],
    [0, DENIED, "not seen"],
  ])("compares generation 7 of era 0 with era %i and transaction %s", (era, zxid, level) => {
    expect(levelOf([judgeTokens({ fences: [look()], era, zxid })], "fence-ahead")).toBe(level);
  });

  it("knows transactions that the client cannot carry", () => {
    expect(levelOf(judgeZxid(2n ** 53n - 1n), "zxid")).toBe("well");
    expect(levelOf(judgeZxid(2n ** 53n), "zxid")).toBe("broken");
  });

  it("finds the result key of every fence, and none for what is no fence", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", "a", ":", "é") }), (key) => {
        try {
          expect(resultKeyOf(fenceKeyOf(key))).toBe(key);
        } catch (error) {
          if (!(error instanceof ResultKeyError)) throw error; // no result key at all
        }
      }),
    );
    for (const key of ["fence:", "fence:x", "fence:{}", "other", "fence:{fence:x}"]) {
      expect(resultKeyOf(key), key).toBeUndefined();
    }
  });
});

describe("the judgement of a ZooKeeper", () => {
  const server = (address: string, mode: string, version = "3.9.3"): ServerLook => ({
    ...{ address, answer: "serves", mode, version, zxid: 1n },
  });
  const down: ServerLook = { address: "d", answer: "none" };
  const three = [server("a", "leader"), server("b", "follower"), server("c", "follower")];

  it.each<[what: string, servers: ServerLook[], servers_: Level, ensemble: Level | "not seen"]>([
    ["an ensemble", three, "well", "well"],
    ["one of three down", [...three.slice(0, 2), down], "warning", "well"],
    ["two of three down", [three[0] as ServerLook, down, down], "broken", "well"],
    ["one alone", [server("a", "standalone")], "warning", "well"],
    ["strangers", [server("a", "standalone"), server("b", "leader")], "well", "broken"],
    ["two leaders", [server("a", "leader"), server("b", "leader")], "well", "broken"],
    ["no leader", three.slice(1), "well", "note"],
    [
      "mute ones",
      [
        { address: "a", answer: "mute" },
        { address: "b", answer: "mute" },
      ],
      "well",
      "not seen",
    ],
  ])("judges %s", (_what, servers, answers, ensemble) => {
    const findings = judgeServers({ servers, syncedFollowers: 1 });
    expect(levelOf(findings, "servers")).toBe(answers);
    expect(levelOf(findings, "ensemble")).toBe(ensemble);
  });

  it.each<[version: string, level: Level]>([
    ["3.3.6", "broken"],
    ["3.4.14", "warning"],
    ["3.5.0", "well"],
    ["3.10.1", "well"],
  ])("calls ZooKeeper %s %s", (version, level) => {
    const findings = judgeServers({
      servers: [server("a", "standalone", version)],
      syncedFollowers: undefined,
    });
    expect(levelOf(findings, "version")).toBe(level);
  });

  it("reads the answers to srvr", () => {
    const text =
      "Zookeeper version: 3.9.3-c26634f3, built on 2024-10-17\nLatency min/avg/max: 0/0.0/0\n" +
      "Zxid: 0x100000002\nMode: follower\nNode count: 5\n";
    const serves = { answer: "serves", mode: "follower", version: "3.9.3", zxid: 4294967298n };
    expect(serverOf("a", text)).toEqual({ address: "a", ...serves });
    const waits = "This ZooKeeper instance is not currently serving requests\n";
    expect(serverOf("a", waits).answer).toBe("waits");
    expect(serverOf("a", "srvr is not executed because it is not in the whitelist.\n").answer).toBe(
      "mute",
    );
    expect(serverOf("a", "").answer).toBe("none");
  });

  it("judges queues by what blocks them, what is strange in them, and how long they are", () => {
    const path: ClaimPathLook = {
      ...{ path: "/p", contenders: 1, persistent: [], foreign: [], nearEnd: [] },
    };
    const judge = (more: Partial<ClaimPathLook>) => {
      const looks = [{ ...path, ...more }];
      const findings = judgeClaimPaths({ parent: "/c", looks, strange: [], left: 0 });
      return Object.fromEntries(
        findings.filter(({ level }) => level !== "well").map(({ check, level }) => [check, level]),
      );
    };
    expect(judge({})).toEqual({});
    expect(judge({ persistent: ["x"] })).toEqual({ "blocked-queues": "broken" });
    expect(judge({ foreign: ["x"] })).toEqual({ "foreign-znodes": "warning" });
    expect(judge({ nearEnd: [2_147_483_000] })).toEqual({ counters: "warning" });
    expect(judge({ nearEnd: [2_147_483_000], foreign: ["x"] })).toEqual({
      counters: "broken",
      "foreign-znodes": "warning",
    });
    expect(judge({ contenders: 10_001 })).toEqual({ "queue-lengths": "warning" });
  });

  it.each<[scheme: string, id: string, rights: number, level: Level]>([
    ["world", "anyone", 31, "warning"],
    ["world", "anyone", 1, "well"],
    ["world", "anyone", 9, "warning"],
    ["digest", "user:hash", 31, "well"],
    ["ip", "0.0.0.0/0", 31, "warning"],
    ["ip", "10.0.0.0/8", 31, "well"],
  ])("calls rights of %s:%s with %i %s", (scheme, id, rights, level) => {
    const looks = [{ path: "/p", entries: [{ scheme, id, rights }] }];
    expect(judgeAccess(looks).level).toBe(level);
  });
});

describe("the doctor's table", () => {
  const finding = (level: Level, seen = true): Finding => ({
    ...{ about: "redis", check: "x", level, seen, found: "f", why: "w", fix: "do it" },
  });

  it("is as bad as its worst finding, and says so in its last line", () => {
    expect(worstOf([])).toBe("well");
    expect(worstOf([finding("warning"), finding("broken"), finding("note")])).toBe("broken");
    const findings = [finding("well"), finding("warning", false)];
    expect(summaryOf(findings)).toBe(
      "0 broken, 1 warning, 0 notes, 1 well (1 not seen): the promise holds until something goes wrong",
    );
    expect(describeFindings(findings, false).trimEnd().split("\n").at(-1)).toBe(
      summaryOf(findings),
    );
    expect(describeFindings(findings, true)).toContain("\x1b[33m");
  });
});
