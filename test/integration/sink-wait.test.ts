/**
 * Waiting for a result on a real Redis. Goal: a wait ends with the result whatever happens to its connections and to
 * the server, sends nothing while nothing happens, and leaves nothing behind. What is the same wherever Redis runs is
 * in `sink-conformance.test.ts`, the wait itself in `wait-for-result.test.ts`.
 */
import { getEventListeners, setMaxListeners } from "node:events";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  OptionError,
  ResultKeyError,
  SinkDeniedError,
  SinkUnreachableError,
  TokenError,
} from "../../lib/errors.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import type { Sink, WaitAnswer, WaitOptions } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { startCutProxy } from "../support/cut-proxy.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

const SOON = { timeout: 30_000, interval: 10 };

let server: TestRedis;
let redis: Redis;
let writer: Sink;
let run = 0;
let key = "";
let name = "";

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  writer = openRedisSink({ url: server.url });
});

afterAll(async () => {
  await writer?.close();
  await redis?.quit();
  await server?.stop();
});

beforeEach(() => {
  run += 1;
  key = `wait-test:${process.pid}:${run}`;
  name = `reader-${run}`;
});

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });

function open(options: Partial<RedisSinkOptions> = {}): Sink {
  const sink = openRedisSink({ url: server.url, name, ...options });
  onTestFinished(() => sink.close());
  return sink;
}

const commit = (sequence: number, to = writer, at = key) =>
  to.commitResult({ key: at, job: "job", token: token(sequence), value: `${sequence}` });

const FOUND = (sequence: number) => ({
  ...{ outcome: "found", key, value: Buffer.from(`${sequence}`), matches: true },
  fence: { committed: { tokenText: token(sequence).text } },
});

interface Client {
  id: string;
  flags: string;
  cmd: string;
}

/** The reader's connections, as the server sees them. */
async function clients(at = redis): Promise<Client[]> {
  const list = String(await at.client("LIST")).split("\n");
  return list
    .map((line) => Object.fromEntries(line.split(" ").map((field) => field.split("="))))
    .filter((fields) => fields.name === name) as Client[];
}

/** The two connections that watch, once they do. */
async function watching(at = redis, notYet: readonly Client[] = []): Promise<Client[]> {
  return vi.waitFor(async () => {
    const all = await clients(at);
    const two = all.filter(
      ({ flags, cmd }) => /P/.test(flags) || (/t/.test(flags) && cmd === "type"),
    );
    expect(two).toHaveLength(2);
    for (const { id } of notYet) expect(two.map((each) => each.id)).not.toContain(id);
    return two;
  }, SOON);
}

const count = (there: number, at = redis) =>
  vi.waitFor(async () => expect(await clients(at)).toHaveLength(there), SOON);

/** A wait that watches, and whether it has ended. */
async function begun(sink: Sink, options: WaitOptions = {}, at = redis) {
  const ends: WaitAnswer[] = [];
  const ended = sink.waitFor(key, options);
  ended.then(
    (answer) => ends.push(answer),
    () => {}, // the test looks at the promise itself
  );
  return { ended, ends, two: await watching(at) };
}

/** The reader's reads and checks from now on, as the server gets them. */
async function heard() {
  const monitor = await redis.monitor();
  onTestFinished(() => monitor.disconnect());
  const seen = { reads: 0, pings: 0 };
  monitor.on("monitor", (_time: string, words: string[]) => {
    const [command = "", , keyCount, first] = words;
    if (/^eval/i.test(command) && keyCount === "2" && first === key) seen.reads += 1;
    if (/^ping$/i.test(command)) seen.pings += 1;
  });
  return seen;
}

describe("waitFor", () => {
  it("gives a result that is there already, without another connection", async () => {
    await commit(1);
    const sink = open();
    expect(await sink.waitFor(key)).toMatchObject(FOUND(1));
    expect(await clients()).toHaveLength(1);
  });

  it("gives the result as soon as it is committed, and then closes what it watched with", async () => {
    const { ended } = await begun(open());
    await commit(1);
    expect(await ended).toMatchObject(FOUND(1));
    await count(1);
  });

  it("goes on through raised fences, refused writes and deletions", async () => {
    await commit(2);
    const { ended, ends } = await begun(open(), { newerThan: token(2).text });
    const seen = await heard();
    const changes = [
      () => commit(1),
      () => writer.advanceFence({ key, job: "job", token: token(3) }),
      () => writer.invalidateResult({ key, job: "job", token: token(3) }),
    ];
    for (const change of changes) {
      const before = seen.reads;
      await change();
      await vi.waitFor(() => expect(seen.reads).toBeGreaterThan(before), SOON);
      expect(ends).toEqual([]);
    }
    await commit(4);
    expect(await ended).toMatchObject(FOUND(4));
  });

  it("waits for a newer token than the one that it was given, and not for another revision", async () => {
    const { ended, ends } = await begun(open(), { newerThan: token(5).text });
    const seen = await heard();
    const request = { key, job: "job", token: token(5), mode: "update" as const };
    for (const value of ["10%", "20%"]) {
      const before = seen.reads;
      await writer.commitResult({ ...request, value });
      await vi.waitFor(() => expect(seen.reads).toBeGreaterThan(before), SOON);
    }
    expect(ends).toEqual([]);
    await commit(6);
    expect(await ended).toMatchObject(FOUND(6));
  });

  it("sends nothing but its checks while nothing happens", async () => {
    const { ended } = await begun(open({ replyTimeoutMs: 500 }));
    const seen = await heard();
    await vi.waitFor(() => expect(seen.pings).toBeGreaterThanOrEqual(3), SOON);
    expect(seen.reads).toBeLessThanOrEqual(1); // the one after the watch began, if it was not done yet
    await commit(1);
    await ended;
    expect(seen.reads).toBeLessThanOrEqual(2);
  });

  it("reads with the sink's key prefix and decompresses", async () => {
    const value = "a result that is long enough ".repeat(100);
    const sink = open({ keyPrefix: "app:", compress: {} });
    const { ended } = await begun(sink);
    await sink.commitResult({ key, job: "job", token: token(1), value });
    expect(await ended).toMatchObject({ outcome: "found", key, value: Buffer.from(value) });
  });

  it("shares its connections among many waits, and leaves no connection and no listener", async () => {
    const sink = open();
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const keys = Array.from({ length: 20 }, (_, index) => `${key}:${index}`);
    const waits = [...keys, ...keys, ...keys].map((each) => sink.waitFor(each, { signal }));
    await begun(sink, { timeoutMs: 2_000 });
    expect(await clients()).toHaveLength(3);
    await Promise.all(keys.map((each) => commit(1, writer, each)));
    const answers = await Promise.all(waits);
    expect(answers.map(({ outcome }) => outcome)).toEqual(answers.map(() => "found"));
    await count(1);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe("the end of a wait", () => {
  it("is a timeout with what is there, where no result came in time", async () => {
    await commit(1);
    const answer = await open().waitFor(key, { newerThan: token(1).text, timeoutMs: 500 });
    expect(answer).toMatchObject({ ...FOUND(1), outcome: "timeout" });
    await count(1);
  });

  it("is the signal's reason when the caller gives up", async () => {
    const controller = new AbortController();
    const { ended } = await begun(open(), { signal: controller.signal });
    const reason = new Error("changed my mind");
    controller.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await count(1);
  });

  it("is an error when the sink is closed, and for waits that come later", async () => {
    const sink = open();
    const { ended } = await begun(sink);
    await sink.close();
    for (const each of [ended, sink.waitFor(key)]) {
      await expect(each).rejects.toThrow(SinkUnreachableError);
      await expect(each).rejects.toThrow("the sink has been closed");
    }
    await count(0);
  });

  it("comes at once for a key, a token or a timeout that cannot be", async () => {
    const sink = open();
    await expect(sink.waitFor("fence:{a}")).rejects.toThrow(ResultKeyError);
    await expect(sink.waitFor(key, { newerThan: "42" })).rejects.toThrow(TokenError);
    await expect(sink.waitFor(key, { timeoutMs: 0 })).rejects.toThrow(OptionError);
  });

  it.each(["client|tracking", "client|id", "subscribe"])(
    "is an error that says which rights are needed, for a user without %s",
    async (right) => {
      const rights = ["~*", "&*", "+@all", `-${right}`];
      await redis.acl("SETUSER", "reader", "reset", "on", ">secret", ...rights);
      const sink = open({ url: server.url.replace("//", "//reader:secret@") });
      const wait = sink.waitFor(key);
      await expect(wait).rejects.toThrow(SinkDeniedError);
      await expect(wait).rejects.toThrow("+client|tracking +subscribe");
      await count(1);
    },
  );

  it("is the result for a user with those rights and no more than a reader needs", async () => {
    const needed =
      "+evalsha +eval +type +hgetall +get +time +client|id +client|tracking +subscribe +ping";
    const rights = ["~*", "resetchannels", "&__redis__:invalidate", ...needed.split(" ")];
    await redis.acl("SETUSER", "reader", "reset", "on", ">secret", ...rights, "+client|setname");
    const url = server.url.replace("//", "//reader:secret@");
    const { ended } = await begun(open({ url }));
    await commit(1);
    expect(await ended).toMatchObject(FOUND(1));
  });
});

describe("a wait through faults", () => {
  it.each(["both connections", "the one that listens", "the one that asks"])(
    "goes on when %s is killed, and misses no commit of that moment",
    async (which) => {
      const { ended, two } = await begun(open());
      const isMeant = ({ flags }: Client) =>
        which.startsWith("both") || /P/.test(flags) === /listens/.test(which);
      for (const { id } of two.filter(isMeant)) await redis.client("KILL", "ID", id);
      await commit(1);
      expect(await ended).toMatchObject(FOUND(1));
      await count(1);
    },
  );

  it("watches again after each connection that was killed", async () => {
    const { ended, ends, two } = await begun(open());
    let before = two;
    for (let kills = 0; kills < 3; kills++) {
      for (const { id } of await clients()) await redis.client("KILL", "ID", id);
      before = await watching(redis, before);
    }
    expect(ends).toEqual([]);
    await commit(1);
    expect(await ended).toMatchObject(FOUND(1));
    await count(1);
  });

  it("goes on when everything is flushed", async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const admin = new Redis(own.url);
    onTestFinished(() => admin.disconnect());
    const sink = open({ url: own.url });
    await commit(1, sink);
    const { ended } = await begun(sink, { newerThan: token(1).text }, admin);
    await admin.flushall();
    await commit(2, sink);
    expect(await ended).toMatchObject(FOUND(2));
  });

  it("goes on when the server is started again", async () => {
    const own = await startRedis({ source: "programs" });
    onTestFinished(() => own.stop());
    const admin = new Redis(own.url).on("error", () => {}); // it is killed on purpose
    onTestFinished(() => admin.disconnect());
    const { ended, ends } = await begun(open({ url: own.url }), {}, admin);
    await own.restart();
    await watching(admin);
    expect(ends).toEqual([]);
    await commit(1, open({ url: own.url }));
    expect(await ended).toMatchObject(FOUND(1));
  });

  it("is an unreachable sink where the server was gone when the time was over", async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const admin = new Redis(own.url).on("error", () => {}); // it is killed on purpose
    onTestFinished(() => admin.disconnect());
    const { ended } = await begun(open({ url: own.url }), { timeoutMs: 3_000 }, admin);
    await own.kill();
    await expect(ended).rejects.toThrow(SinkUnreachableError);
  });

  it("notices a frozen server, and goes on when it is back", async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const admin = new Redis(own.url);
    onTestFinished(() => admin.disconnect());
    const sink = open({ url: own.url, replyTimeoutMs: 300 });
    const { ended, ends, two } = await begun(sink, {}, admin);
    await own.pause();
    await expect(sink.readResult(key, { timeoutMs: 1_000 })).rejects.toThrow(SinkUnreachableError);
    await own.resume();
    await watching(admin, two);
    expect(ends).toEqual([]);
    await commit(1, sink);
    expect(await ended).toMatchObject(FOUND(1));
  });

  it("notices a network that swallows everything, and goes on over another connection", async () => {
    const proxy = await startCutProxy({ targetPort: server.port });
    onTestFinished(() => proxy.stop());
    const sink = open({ url: `redis://127.0.0.1:${proxy.port}`, replyTimeoutMs: 300 });
    const { ended } = await begun(sink);
    const before = proxy.connectionCount();
    proxy.holdRequests();
    await vi.waitFor(() => expect(proxy.connectionCount()).toBeGreaterThan(before), SOON);
    await commit(1);
    proxy.releaseRequests();
    expect(await ended).toMatchObject(FOUND(1));
  });
});
