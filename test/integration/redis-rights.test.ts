/**
 * Goal: the rights that the README gives a worker are enough for all that the sink does, and none of them is too many;
 * and no password comes out of us. Method: its lines are read from it and applied to a real server, whole and with each
 * right taken away.
 */
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { FencekeeperError, SinkDeniedError } from "../../lib/errors.js";
import { FencePolicy } from "../../lib/redis/fence-policy.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import type { CommitRequest, Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { exitStatusOf } from "../../recipes/cli/exit.js";
import { diagnose } from "../../recipes/doctor/diagnose.js";
import { RIGHTS } from "../../recipes/doctor/redis/rights.js";
import { cli } from "../support/cli.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const PASSWORD = "tr0ub4dor";

/** The words after `ACL SETUSER <user>` in the README. */
function rightsIn(user: string): string[] {
  const [, words = ""] = new RegExp(`^ACL SETUSER ${user} (.*)$`, "m").exec(README) ?? [];
  return words.replace("PASSWORD", PASSWORD).split(" ");
}

const WORKER = rightsIn("worker");
const READER = rightsIn("reader");
const COMMANDS = WORKER.filter((word) => word.startsWith("+")).map((word) => word.slice(1));

let server: TestRedis;
let redis: Redis;
let run = 0;
let key = "";

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});

afterAll(async () => {
  await redis?.quit();
  await server?.stop();
});

beforeEach(async () => {
  key = `report:${run++}`;
  await redis.flushall();
});

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });

const urlOf = (user: string, password = PASSWORD) =>
  server.url.replace("//", `//${user}:${password}@`);

function open(options: Partial<RedisSinkOptions> = {}): Sink {
  const sink = openRedisSink({ url: server.url, ...options });
  onTestFinished(() => sink.close());
  return sink;
}

/** A sink of a user with these rights. */
async function openAs(words: string[], options: Partial<RedisSinkOptions> = {}): Promise<Sink> {
  await redis.call("ACL", "SETUSER", "user", ...words);
  return open({ url: urlOf("user"), ...options });
}

const without = (...commands: string[]) =>
  WORKER.filter((word) => !commands.includes(word.slice(1)));

const large = "0123456789abcdef".repeat(10_000);

function commit(sink: Sink, sequence: number, value: string, more: Partial<CommitRequest> = {}) {
  return sink.commitResult({ key, job: "job", token: token(sequence), value, ...more });
}

function commitAll(sink: Sink, sequence: number) {
  const results = [
    { key: `${key}:gone`, value: undefined },
    { key, value: "of a batch" },
  ];
  return sink.commitResults({ job: "job", token: token(sequence), results });
}

const claim = (sequence: number) => ({ key, job: "job", token: token(sequence) });

/** All that is stored, in a form that can be compared; but what was put apart for a script goes within a minute. */
async function stored(): Promise<unknown> {
  const names = (await redis.keys("*")).sort();
  const all = names.map(async (name) => {
    const isHash = (await redis.type(name)) === "hash";
    const content = isHash ? await redis.hgetall(name) : await redis.get(name);
    return { name, content, expires: (await redis.pttl(name)) >= 0 };
  });
  const stays = ({ name, expires }: { name: string; expires: boolean }) =>
    !(name.startsWith("fence-stage:") && expires);
  return (await Promise.all(all)).filter(stays);
}

describe("the rights that the README gives a worker", () => {
  it("are enough for all that a sink does", async () => {
    const sink = await openAs(WORKER, { retentionMs: 100_000 });
    expect(await sink.advanceFence(claim(1))).toMatchObject({ outcome: "advanced" });
    expect(await commit(sink, 1, "one", { ttlMs: 50_000 })).toMatchObject({ revision: 1 });
    await sink.advanceFence(claim(2));
    expect(await commit(sink, 2, "10%", { mode: "update" })).toMatchObject({ revision: 1 });
    expect(await commit(sink, 2, "20%", { mode: "update" })).toMatchObject({ revision: 2 });
    expect(await commit(sink, 1, "late")).toMatchObject({ outcome: "stale" });
    expect(await commit(sink, 3, large, { ttlMs: 50_000 })).toMatchObject({ revision: 1 });
    expect(await commit(sink, 4, large)).toMatchObject({ outcome: "committed" });
    expect(await commitAll(sink, 5)).toMatchObject({ outcome: "committed" });
    expect((await sink.readResult(key)).value?.toString()).toBe("of a batch");
    expect(await sink.invalidateResult(claim(6))).toMatchObject({ found: true });
    expect((await sink.readResult(key)).fence).toMatchObject({ staleCount: 1 });
    const names = await redis.client("LIST");
    expect(names).toMatch(/name=fencekeeper .*user=user/);
  });

  it("are those that the doctor asks for, and are well to it", async () => {
    expect([...COMMANDS].sort()).toEqual(RIGHTS.replaceAll("+", "").split(" ").sort());
    await openAs(WORKER);
    const findings = await diagnose({ redis: { url: urlOf("user") }, key: "report:1" });
    const rights = findings.filter(({ check }) => check === "rights");
    expect(rights).toMatchObject([{ level: "well", about: "redis" }]);
  });

  it("end where the pattern of the keys ends", async () => {
    const sink = await openAs(WORKER);
    for (const other of ["other:1", "reports", "fenced"]) {
      const refused = [
        sink.advanceFence({ ...claim(1), key: other }),
        commit(sink, 1, "one", { key: other }),
        sink.invalidateResult({ ...claim(1), key: other }),
        sink.readResult(other),
      ];
      for (const each of refused) await expect(each).rejects.toThrow(SinkDeniedError);
    }
    expect(await stored()).toEqual([]);
  });

  it("can be kept from the fences of other teams", async () => {
    const [, ...patterns] = /keep them apart with ([^;]*);/s.exec(README)?.[1]?.split("`~") ?? [];
    const narrow = patterns.map((text) => `~${text.split("`")[0]}`);
    expect(narrow).toHaveLength(4);
    const wide = ["~fence:*", "~fence-stage:*"];
    const sink = await openAs([...WORKER.filter((word) => !wide.includes(word)), ...narrow]);
    for (const own of [key, `${key}:{tag}`]) {
      expect(await commit(sink, 1, large, { key: own })).toMatchObject({ outcome: "committed" });
    }
    const user = new Redis(urlOf("user"));
    onTestFinished(() => void user.disconnect());
    await expect(user.hset("fence:{other}", "token", "")).rejects.toThrow("NOPERM");
  });
});

/** For each right: who lacks it is refused what the function asks for. */
const REFUSED: Record<string, (sink: Sink) => Promise<unknown>> = {
  eval: (sink) => sink.advanceFence(claim(9)),
  // the first call of a connection brings the script itself
  evalsha: async (sink) => {
    await sink.readResult(key);
    return sink.readResult(key);
  },
  time: (sink) => sink.advanceFence(claim(9)),
  type: (sink) => commit(sink, 9, "nine"),
  get: (sink) => commit(sink, 9, "nine", { key: `${key}:new` }),
  set: (sink) => commit(sink, 9, "nine"),
  unlink: (sink) => sink.invalidateResult(claim(9)),
  persist: (sink) => sink.advanceFence(claim(9)),
  pexpire: (sink) => commit(sink, 9, "nine", { ttlMs: 50_000 }),
  hgetall: (sink) => sink.readResult(key),
  hset: (sink) => sink.advanceFence(claim(9)),
  hdel: (sink) => commitAll(sink, 9),
  pttl: (sink) => commit(sink, 9, "nine"),
  rename: (sink) => commit(sink, 9, large),
};

const MISSED_IN_SILENCE = ["hincrby", "client|setname", "info"];

/** A result whose fence expires, so that everything has to be done to it. */
async function prepare(): Promise<void> {
  await commit(open({ retentionMs: 100_000 }), 5, "five", { ttlMs: 100_000 });
}

async function refusalOf(asked: Promise<unknown>): Promise<SinkDeniedError> {
  const error = await asked.catch((fault: unknown) => fault);
  expect(error).toBeInstanceOf(SinkDeniedError);
  return error as SinkDeniedError;
}

describe("a right that is missing", () => {
  it("is each of those in the README", () => {
    expect([...Object.keys(REFUSED), ...MISSED_IN_SILENCE].sort()).toEqual([...COMMANDS].sort());
  });

  it.each(Object.entries(REFUSED))(
    "%s refuses what needs it, and nothing is changed",
    async (command, act) => {
      await prepare();
      const before = await stored();
      const error = await refusalOf(act(await openAs(without(command), { retentionMs: 100_000 })));
      expect(error.definite).toBe(true);
      expect(exitStatusOf(error)).toBe(77);
      expect(error.message.split("\n")).toHaveLength(1);
      expect(await stored()).toEqual(before);
    },
  );

  it("TIME refuses before the refusal of a stale write is counted", async () => {
    await prepare();
    const before = await stored();
    await refusalOf(commit(await openAs(without("time")), 4, "late"));
    expect(await stored()).toEqual(before);
  });

  it.each(["time", "rename", "pexpire", "persist"])(
    "%s refuses a large value also where its key is only observed",
    async (command) => {
      await prepare();
      const before = await stored();
      const policy = new FencePolicy({ prefixes: { "report:": "observe" } });
      await refusalOf(commit(await openAs(without(command), { policy }), 4, large));
      expect(await stored()).toEqual(before);
    },
  );

  it("of the three that are missed in silence leaves the writes as they are", async () => {
    await prepare();
    const sink = await openAs(without(...MISSED_IN_SILENCE));
    expect(await commit(sink, 4, "late")).toMatchObject({ outcome: "stale" });
    expect(await commit(sink, 6, "six")).toMatchObject({ outcome: "committed" });
    expect((await sink.readResult(key)).fence).toMatchObject({ staleCount: 0 });
    expect(await redis.client("LIST")).not.toMatch(/name=fencekeeper .*user=user/);
  });

  it("INFO leaves it to the scripts to find that a fence is gone, and they do", async () => {
    const losses: string[] = [];
    const onFenceLoss = ({ key: lost }: { key: string }) => losses.push(lost);
    const sink = await openAs(without("info"), { onFenceLoss });
    await sink.advanceFence(claim(5));
    onTestFinished(sink.keepRaised(claim(5)));
    await redis.del(`fence:{${key}}`);
    expect(await commit(sink, 5, "five")).toMatchObject({ outcome: "committed" });
    expect(losses).toEqual([key]);
  });

  it("SELECT refuses another database than 0, and is enough for it", async () => {
    await openAs(WORKER);
    const url = `${urlOf("user")}/1`;
    await refusalOf(commit(open({ url }), 1, "one"));
    const sink = await openAs([...WORKER, "+select"], { url });
    expect(await commit(sink, 1, "one")).toMatchObject({ outcome: "committed" });
  });

  it("WAIT lets the write happen, and says that nothing was waited for", async () => {
    const durability = { replicas: 1, timeoutMs: 10 };
    const answer = await commit(await openAs(WORKER, { durability }), 1, "one");
    expect(answer).toMatchObject({ outcome: "committed", durability: { reached: false } });
  });
});

describe("the rights that the README gives a reader", () => {
  it("are enough to read results, and for no write", async () => {
    await prepare();
    const before = await stored();
    const sink = await openAs(READER);
    expect(await sink.readResult(key)).toMatchObject({ matches: true });
    const { status, stdout } = await cli(["get", key, "--redis", urlOf("user")]);
    expect([status, stdout.toString()]).toEqual([0, "five"]);
    await refusalOf(sink.advanceFence(claim(9)));
    await refusalOf(commit(sink, 9, "nine"));
    await refusalOf(sink.invalidateResult(claim(9)));
    expect(await stored()).toEqual(before);
  });

  it.each(READER.filter((word) => word.startsWith("+")))("hold %s for a reason", async (word) => {
    await prepare();
    const sink = await openAs(READER.filter((each) => each !== word));
    await refusalOf(sink.readResult(key).then(() => sink.readResult(key)));
  });
});

describe("a password", () => {
  const WRONG = "n0t-the-one";

  function expectNoSecret(text: string): void {
    for (const secret of [WRONG, PASSWORD]) expect(text).not.toContain(secret);
  }

  it("is in no error that says that it is wrong, nor in what the error was made of", async () => {
    await openAs(WORKER);
    for (const url of [urlOf("user", WRONG), urlOf("nobody", WRONG)]) {
      const error = await refusalOf(commit(open({ url }), 1, "one"));
      expect(error.message).toContain("WRONGPASS");
      for (let each: unknown = error; each instanceof Error; each = each.cause) {
        expectNoSecret(`${each.message} ${each.stack} ${JSON.stringify(each)}`);
        if (each.cause === undefined) break;
      }
      expectNoSecret(inspect(error, { depth: 20, showHidden: true }));
    }
  });

  it("is in no error about a command that is refused, nor about a server that is away", async () => {
    const denied = await refusalOf(commit(await openAs(without("set")), 1, "one"));
    const url = `redis://user:${PASSWORD}@127.0.0.1:1`;
    const away = await commit(open({ url, timeoutMs: 50 }), 1, "one").catch((error) => error);
    expect(away).toBeInstanceOf(FencekeeperError);
    for (const error of [denied, away]) {
      expectNoSecret(inspect(error, { depth: 20, showHidden: true }));
    }
  });

  it("is in nothing that the command line or the doctor says", async () => {
    await openAs(WORKER);
    const url = urlOf("user", WRONG);
    for (const args of [["get", key], ["doctor"]]) {
      const env = { REDIS_URL: url, ZOOKEEPER_CONNECT: undefined };
      const { status, stdout, stderr } = await cli([...args, "--json"], { env });
      expect(status).toBe(args[0] === "get" ? 77 : 2);
      expect(stdout + stderr).toContain("WRONGPASS");
      expectNoSecret(stdout + stderr);
    }
  });
});
