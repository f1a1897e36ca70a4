/**
 * The scripts, called as a service in another language would call them. Goal: what they must refuse is refused before
 * anything is written, and the rules that matter are found broken when the comparison is broken on purpose.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceCorruptError, ResultTypeError } from "../../lib/errors.js";
import { floorKeyOf } from "../../lib/redis/fence-key.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { type ScriptName, scriptText } from "../../lib/redis/script-files.js";
import { digestOf } from "../../lib/redis/stored-form.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

let server: TestRedis;
let redis: Redis;
let sink: Sink;
let run = 0;
let key = "";
let fence = "";
let floor = "";

beforeAll(async () => {
  server = await startRedis({ args: [] });
  redis = new Redis(server.url);
  sink = openRedisSink({ url: server.url });
});

afterAll(async () => {
  await sink?.close();
  await redis?.quit();
  await server?.stop();
});

beforeEach(() => {
  key = `script-test:${process.pid}:${run++}`;
  fence = `fence:{${key}}`;
  floor = floorKeyOf(key);
});

const token = (sequence: number, generation = 7n) =>
  makeToken({ era: 0, generation, sequence }).text;

/** Calls a script as it is, or as changed by a test. */
function call(script: string, args: string[], client = redis): Promise<unknown> {
  return client.eval(script, 3, key, fence, floor, ...args);
}

function commitArgs(more: Partial<Record<keyof typeof COMMIT, string>> = {}): string[] {
  const value = more.value ?? "value";
  return Object.values({ ...COMMIT, digest: digestOf(Buffer.from(value)), ...more, value });
}

const COMMIT = {
  token: token(1),
  job: "job",
  value: "value",
  digest: "",
  ttlMs: "",
  mode: "once",
  holder: "",
};

/** What is stored at both keys, and whether it expires. */
async function stored(): Promise<unknown> {
  const states = [key, fence].map(async (name) => {
    const type = await redis.type(name);
    // The dump of a hash may differ though its fields are the same.
    const content = type === "hash" ? await redis.hgetall(name) : await redis.dumpBuffer(name);
    return { type, content, expires: (await redis.pttl(name)) >= 0 };
  });
  return Promise.all(states);
}

/** Whatever is asked must leave value and fence as they are. */
async function changesNothing(asked: () => Promise<unknown>): Promise<void> {
  const before = await stored();
  await asked();
  expect(await stored()).toEqual(before);
}

describe("a text that is not a canonical token", () => {
  const vectors = [
    "2147483647",
    "4294967296",
    "99999999999999",
    "100000000000000",
    "9007199254740991",
    "9007199254740993",
    "-1",
    "",
    "1e3",
    "007",
    " 5",
    "0x10",
    "00000.00000000000000000007.000000001",
    "00000.00000000000000000007.00000000011",
    "00000.00000000000000000007.000000000a",
    "00000.00000000000000000007.-000000001",
    "00000.00000000000000000007,0000000001",
    "00000.00000000000000000007.0000000001\n",
    "00000.00000000000000000007.2147483647",
    "00000.09223372036854775808.0000000001",
    "00000.00000000000000000007.000000\x001",
  ];

  it.each(vectors)("%j is refused by the writing scripts, and nothing is written", async (text) => {
    await changesNothing(async () => {
      expect(await call(scriptText("advanceFence"), [text, "job", ""])).toEqual(["badtoken"]);
      const commit = await call(scriptText("commitResult"), commitArgs({ token: text }));
      expect(commit).toEqual(["badtoken"]);
    });
  });

  it.each(vectors)(
    "%j in a stored fence makes it corrupt, and nothing is written",
    async (text) => {
      await redis.hset(fence, { token: text, job: "job", state: "open" });
      await changesNothing(async () => {
        for (const [name, args] of everyCall()) {
          expect(await call(scriptText(name), args)).toEqual(["corrupt", "token"]);
        }
      });
    },
  );
});

function everyCall(): [ScriptName, string[]][] {
  return [
    ["advanceFence", [token(2), "job", ""]],
    ["commitResult", commitArgs({ token: token(2) })],
    ["readResult", []],
  ];
}

describe("what is stored in another form", () => {
  it.each([
    ["list", () => redis.lpush(key, "a")],
    ["hash", () => redis.hset(key, "a", "b")],
    ["stream", () => redis.xadd(key, "*", "a", "b")],
  ])("a %s at the result key is refused, and nothing is written", async (type, prepare) => {
    await prepare();
    await changesNothing(async () => {
      for (const [name, args] of everyCall()) {
        expect(await call(scriptText(name), args)).toEqual(["wrongtype", type]);
      }
    });
    await expect(sink.readResult(key)).rejects.toThrow(ResultTypeError);
  });

  it("a string at the fence's key is a corrupt fence, and nothing is written", async () => {
    await redis.set(fence, token(1));
    await changesNothing(async () => {
      for (const [name, args] of everyCall()) {
        expect(await call(scriptText(name), args)).toEqual(["corrupt", "type string"]);
      }
    });
    await expect(sink.readResult(key)).rejects.toThrow(FenceCorruptError);
  });

  const good = {
    token: token(1),
    job: "job",
    state: "committed",
    digest: digestOf(Buffer.from("value")),
    revision: "1",
    committedAt: "1700000000000",
  };

  it.each([
    ["token", { token: undefined }],
    ["job", { job: undefined }],
    ["job", { job: "" }],
    ["job", { job: "j".repeat(65) }],
    ["state", { state: undefined }],
    ["state", { state: "done" }],
    ["committedToken", { state: "open", committedToken: token(2) }],
    ["committedToken", { state: "open", committedToken: "1" }],
    ["digest", { digest: undefined }],
    ["digest", { digest: "A".repeat(64) }],
    ["revision", { revision: undefined }],
    ["revision", { revision: "1e3" }],
    ["revision", { revision: "1".repeat(16) }],
    ["committedAt", { committedAt: "01" }],
    ["order", { order: "1" }],
    ["stale", { stale: "-1" }],
    ["observed", { observed: "" }],
    ["lastStaleToken", { lastStaleToken: "5" }],
    ["lastStaleAt", { lastStaleAt: "soon" }],
  ])("a fence whose %s is as in %j is corrupt, and nothing is written", async (field, change) => {
    const fields = Object.entries({ ...good, ...change }).filter(([, text]) => text !== undefined);
    await redis.hset(fence, ...(fields as [string, string][]).flat());
    await redis.set(key, "value");
    await changesNothing(async () => {
      for (const [name, args] of everyCall()) {
        expect(await call(scriptText(name), args)).toEqual(["corrupt", field]);
      }
    });
  });

  it("a fence as it must be is not corrupt", async () => {
    await redis.hset(fence, { ...good, stale: "0", unknown: "a field of a later version" });
    const [answer] = (await call(scriptText("advanceFence"), [token(1), "job", ""])) as string[];
    expect(answer).toBe("current");
  });
});

describe("a bad argument", () => {
  it.each([
    ["job", { job: "" }],
    ["job", { job: "j".repeat(65) }],
    ["digest", { digest: "" }],
    ["digest", { digest: "A".repeat(64) }],
    ["ttl", { ttlMs: "0" }],
    ["ttl", { ttlMs: "-5" }],
    ["ttl", { ttlMs: "1.5" }],
    ["ttl", { ttlMs: "1e3" }],
    ["ttl", { ttlMs: "007" }],
    ["ttl", { ttlMs: "9007199254740992" }],
    ["ttl", { ttlMs: "10000000000000000" }],
    ["mode", { mode: "" }],
    ["mode", { mode: "twice" }],
    ["holder", { holder: "h".repeat(65) }],
  ])("%s as in %j is refused by commitResult, and nothing is written", async (name, change) => {
    await changesNothing(async () => {
      const reply = await call(scriptText("commitResult"), commitArgs(change));
      expect(reply).toEqual(["badargument", name]);
    });
  });

  it("is refused by advanceFence too, also when arguments are missing", async () => {
    const script = scriptText("advanceFence");
    await changesNothing(async () => {
      expect(await call(script, [token(1), "j".repeat(65), ""])).toEqual(["badargument", "job"]);
      expect(await call(script, [token(1), "job", "h".repeat(65)])).toEqual([
        "badargument",
        "holder",
      ]);
      expect(await call(script, [])).toEqual(["badtoken"]);
      expect(await call(script, [token(1)])).toEqual(["badargument", "job"]);
      expect(await call(scriptText("commitResult"), [token(1), "job", "value"])).toEqual([
        "badargument",
        "digest",
      ]);
    });
  });
});

describe("the comparison", () => {
  /** Which rules a pair of scripts breaks, each rule tried on keys of its own. */
  async function brokenRules(change: (text: string) => string): Promise<string[]> {
    const advanceText = change(scriptText("advanceFence"));
    const commitText = change(scriptText("commitResult"));
    const broken: string[] = [];
    const rule = async (name: string, steps: string[], value: string | null) => {
      await redis.del(key, fence);
      for (const step of steps) {
        const [verb, generation = "", sequence = ""] = step.split(" ");
        const text = token(Number(sequence), BigInt(generation));
        if (verb === "advance") await call(advanceText, [text, "job", ""]);
        else await call(commitText, commitArgs({ token: text, value: step }));
      }
      if ((await redis.get(key)) !== value) broken.push(name);
    };
    await rule("an older token writes nothing", ["commit 7 2", "commit 7 1"], "commit 7 2");
    await rule("a newer token writes", ["commit 7 1", "commit 7 2"], "commit 7 2");
    await rule("a raised fence refuses", ["advance 7 1", "advance 7 2", "commit 7 1"], null);
    await rule(
      "an old fence does not come back",
      ["advance 7 2", "advance 7 1", "commit 7 1"],
      null,
    );
    await rule("the generation counts first", ["commit 7 900", "commit 8 0"], "commit 8 0");
    await rule("a late generation is refused", ["commit 8 0", "commit 7 900"], "commit 8 0");
    return broken;
  }

  const LESS = "claim.token < fence.token";

  it("keeps every rule", async () => {
    expect(scriptText("advanceFence")).toContain(LESS);
    expect(scriptText("commitResult")).toContain(LESS);
    expect(await brokenRules((text) => text)).toEqual([]);
  });

  it("is missed when everything is accepted", async () => {
    expect(await brokenRules((text) => text.replace(LESS, "false"))).toEqual([
      "an older token writes nothing",
      "a raised fence refuses",
      "an old fence does not come back",
      "a late generation is refused",
    ]);
  });

  it("is missed when the first writer wins", async () => {
    const change = (text: string) => text.replace(LESS, "claim.token ~= fence.token");
    expect(await brokenRules(change)).toContain("a newer token writes");
  });

  it("is missed when the bare sequence is compared", async () => {
    const change = (text: string) =>
      text.replace(LESS, "claim.token:sub(28) < fence.token:sub(28)");
    expect(await brokenRules(change)).toEqual([
      "the generation counts first",
      "a late generation is refused",
    ]);
  });
});

describe("a user who may not run every command", () => {
  /** As on Redis 6.2, where scripts cannot ask what their user may do. */
  const unasked = (text: string) => text.replaceAll("redis.acl_check_cmd", "redis.not_there");

  async function canAsk(): Promise<boolean> {
    return (await redis.eval("return redis.acl_check_cmd and 1 or 0", 0)) === 1;
  }

  async function clientWithout(command: string): Promise<Redis> {
    await redis.acl("SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", `-${command}`);
    return new Redis(server.url, { username: "limited", password: "secret" });
  }

  const cases: [ScriptName, string][] = [
    ["advanceFence", "hset"],
    ["advanceFence", "persist"],
    ["commitResult", "set"],
    ["commitResult", "hset"],
    ["commitResult", "persist"],
  ];

  it.each(cases)("%s without %s changes nothing, and says so", async (name, command) => {
    if (!(await canAsk())) return; // Redis 6.2: the next test is about it
    const client = await clientWithout(command);
    await call(scriptText("commitResult"), commitArgs());
    if (command === "persist") await redis.pexpire(fence, 1_000_000);
    const args = name === "advanceFence" ? [token(2), "job", ""] : commitArgs({ token: token(2) });
    await changesNothing(async () => {
      const reply = await call(scriptText(name), args, client);
      expect(reply).toEqual(["noperm", command.toUpperCase()]);
    });
    await client.quit();
  });

  it.each(cases)(
    "%s without %s changes nothing where it cannot ask first",
    async (name, command) => {
      const client = await clientWithout(command);
      await call(scriptText("commitResult"), commitArgs());
      if (command === "persist") await redis.pexpire(fence, 1_000_000);
      const args =
        name === "advanceFence" ? [token(2), "job", ""] : commitArgs({ token: token(2) });
      await changesNothing(async () => {
        await expect(call(unasked(scriptText(name)), args, client)).rejects.toThrow(
          /permission|can't run/i,
        );
      });
      await client.quit();
    },
  );

  it.each([true, false])(
    "scripts that cannot ask work the same (a value is there: %s)",
    async (there) => {
      if (there) await redis.set(key, "before", "PX", 100_000);
      await redis.hset(fence, { token: token(0), job: "job", state: "open" });
      await redis.pexpire(fence, 1_000_000);
      const reply = await call(unasked(scriptText("commitResult")), commitArgs());
      expect(reply).toEqual(["committed", "1"]);
      expect(await redis.get(key)).toBe("value");
      expect([await redis.pttl(key), await redis.pttl(fence)]).toEqual([-1, -1]);
    },
  );

  it("is told of a refusal even when it cannot be counted", async () => {
    await call(scriptText("advanceFence"), [token(2), "job", ""]);
    const client = await clientWithout("hincrby");
    await changesNothing(async () => {
      const reply = await call(unasked(scriptText("commitResult")), commitArgs(), client);
      expect(reply).toEqual(["stale", token(2)]);
    });
    await client.quit();
  });
});
