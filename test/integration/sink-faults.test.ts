/**
 * The sink through faults: lost requests and replies, servers that are stopped, frozen, loading, busy, read-only, out
 * of memory or closed to us. Goal: no call outlasts its deadline, and what an error says about the write is true.
 */
import { connect, createServer } from "node:net";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  ConfigurationError,
  FencekeeperError,
  SinkDeniedError,
  SinkOutcomeUnknownError,
  SinkOutOfMemoryError,
  SinkReadOnlyError,
  SinkUnreachableError,
} from "../../lib/errors.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import type { CallOptions, CommitRequest, Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { type CutProxy, startCutProxy } from "../support/cut-proxy.js";
import { freePort, startRedis, type TestRedis } from "../support/redis-for-test.js";

let server: TestRedis;
let redis: Redis;
let run = 0;
let key = "";

beforeAll(async () => {
  server = await startRedis({ args: ["--lua-time-limit", "20"] });
  redis = new Redis(server.url);
});

afterAll(async () => {
  await redis?.quit();
  await server?.stop();
});

beforeEach(() => {
  key = `fault-test:${process.pid}:${run++}`;
});

/** Answers scripts as a server does that loads its data, so many times; then the real server is behind it. */
async function startLoadingFront(options: { targetPort: number; refusals: number }) {
  let refused = 0;
  const front = createServer((client) => {
    const upstream = connect(options.targetPort, "127.0.0.1");
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    upstream.on("data", (bytes) => client.write(bytes));
    client.on("data", (bytes) => {
      const isScript = /\r\neval(?:sha)?\r\n/i.test(bytes.toString("latin1"));
      if (!isScript || refused >= options.refusals) {
        upstream.write(bytes);
        return;
      }
      refused += 1;
      client.write("-LOADING Redis is loading the dataset in memory\r\n");
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => front.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => void front.close());
  return { port, refused: () => refused };
}

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });

function openSink(options: Partial<RedisSinkOptions> = {}): Sink {
  const sink = openRedisSink({ url: server.url, ...options });
  onTestFinished(() => sink.close());
  return sink;
}

async function openProxy(port?: number): Promise<CutProxy> {
  const proxy = await startCutProxy({ targetPort: server.port, ...(port && { port }) });
  onTestFinished(() => proxy.stop());
  return proxy;
}

/** A sink that talks through a proxy and is connected already, and the proxy. */
async function openProxied(options: Partial<RedisSinkOptions> = {}) {
  const proxy = await openProxy();
  const sink = openSink({ url: `redis://127.0.0.1:${proxy.port}`, ...options });
  await sink.readResult(key);
  return { proxy, sink };
}

function commit(
  sink: Sink,
  sequence: number,
  value: string,
  more: Partial<CommitRequest> & CallOptions = {},
) {
  const { timeoutMs, signal, ...request } = more;
  const limits = { ...(timeoutMs && { timeoutMs }), ...(signal && { signal }) };
  return sink.commitResult({ key, job: "job", token: token(sequence), value, ...request }, limits);
}

async function faultOf(promise: Promise<unknown>): Promise<FencekeeperError> {
  const fault = await promise.then(
    (answer) => `an answer: ${JSON.stringify(answer)}`,
    (error: unknown) => error,
  );
  expect(fault).toBeInstanceOf(FencekeeperError);
  return fault as FencekeeperError;
}

/** Redis 7 or later, or a Valkey, which says that it is like Redis 7. */
async function isRedis7(): Promise<boolean> {
  return !/redis_version:[0-6]\./.test(await redis.info("server"));
}

async function expectNothingStored(): Promise<void> {
  expect(await redis.exists(key, `fence:{${key}}`)).toBe(0);
}

describe("a broken connection", () => {
  it("that loses the reply of a commit leaves one commit, and the repeat knows it", async () => {
    const { proxy, sink } = await openProxied();
    proxy.cutNextReply();
    expect(await commit(sink, 1, "one")).toEqual({ outcome: "duplicate", revision: 1 });
    expect(proxy.connectionCount()).toBe(2);
    expect(await commit(sink, 1, "other")).toEqual({ outcome: "conflict" });
    expect(await redis.get(key)).toBe("one");
  });

  it("that loses the reply of an update does not write it twice", async () => {
    const { proxy, sink } = await openProxied();
    await commit(sink, 1, "10%", { mode: "update" });
    proxy.cutNextReply();
    const answer = await commit(sink, 1, "20%", { mode: "update" });
    expect(answer).toEqual({ outcome: "duplicate", revision: 2 });
  });

  it("that loses the reply of an advance leaves the fence raised", async () => {
    const { proxy, sink } = await openProxied();
    proxy.cutNextReply();
    const answer = await sink.advanceFence({ key, job: "job", token: token(4) });
    expect(answer).toEqual({ outcome: "current", present: undefined });
  });

  it("that loses the request does not lose the commit", async () => {
    const { proxy, sink } = await openProxied();
    proxy.cutNextRequest();
    expect(await commit(sink, 1, "one")).toEqual({ outcome: "committed", revision: 1 });
  });

  it("that loses a read is followed by another read", async () => {
    const { proxy, sink } = await openProxied();
    await commit(sink, 1, "one");
    proxy.cutNextReply();
    expect((await sink.readResult(key)).value?.toString()).toBe("one");
  });

  it("does not disturb the other calls on it", async () => {
    const { proxy, sink } = await openProxied();
    proxy.cutNextReply();
    const answers = await Promise.all(
      [1, 2, 3].map((number) => commit(sink, number, "v", { key: `${key}:${number}` })),
    );
    for (const { outcome } of answers) expect(["committed", "duplicate"]).toContain(outcome);
    expect(proxy.connectionCount()).toBe(2);
  });

  it("comes back to the database that was asked for", async () => {
    const proxy = await openProxy();
    const sink = openSink({ url: `redis://127.0.0.1:${proxy.port}/5` });
    await sink.readResult(key);
    proxy.cutNextReply();
    await commit(sink, 1, "one");
    await expectNothingStored();
    expect((await sink.readResult(key)).value?.toString()).toBe("one");
  });
});

describe("a request that is held up on its way", () => {
  it("is refused when a newer token came first: comparing and writing are one step", async () => {
    const { proxy, sink } = await openProxied();
    proxy.holdRequests();
    const late = commit(sink, 1, "held up");
    await vi.waitFor(() => expect(proxy.heldCount()).toBe(1));
    expect(await commit(openSink(), 2, "newer")).toMatchObject({ outcome: "committed" });
    proxy.releaseRequests();
    expect(await late).toEqual({ outcome: "stale", fenceText: token(2).text });
    expect(await redis.get(key)).toBe("newer");
  });

  it("is unknown at the deadline, may still be done, and is known by asking again", async () => {
    const { proxy, sink } = await openProxied();
    proxy.holdRequests();
    const fault = await faultOf(commit(sink, 1, "one", { timeoutMs: 100 }));
    expect(fault).toBeInstanceOf(SinkOutcomeUnknownError);
    expect(fault.definite).toBe(false);
    await expectNothingStored();
    proxy.releaseRequests();
    await vi.waitFor(async () => expect(await redis.get(key)).toBe("one"));
    expect(await commit(sink, 1, "one")).toMatchObject({ outcome: "duplicate" });
  });

  it("is given up for a new connection when the server is silent for too long", async () => {
    const { proxy, sink } = await openProxied({ replyTimeoutMs: 100, timeoutMs: 20_000 });
    proxy.holdRequests();
    const committed = commit(sink, 1, "one");
    await vi.waitFor(() => expect(proxy.connectionCount()).toBeGreaterThan(1));
    proxy.releaseRequests();
    expect(["committed", "duplicate"]).toContain((await committed).outcome);
    expect((await sink.readResult(key)).fence).toMatchObject({ committed: { revision: 1 } });
  });

  it("is unknown when the caller cancels it", async () => {
    const { proxy, sink } = await openProxied();
    proxy.holdRequests();
    const cancel = new AbortController();
    const fault = faultOf(commit(sink, 1, "one", { signal: cancel.signal }));
    await vi.waitFor(() => expect(proxy.heldCount()).toBe(1));
    const reason = new Error("not needed any more");
    cancel.abort(reason);
    expect(await fault).toBeInstanceOf(SinkOutcomeUnknownError);
    expect((await fault).cause).toBe(reason);
  });
});

describe("a call that is cancelled before anything was sent", () => {
  it("throws the signal's reason", async () => {
    const reason = new Error("cancelled");
    const done = AbortSignal.abort(reason);
    await expect(commit(openSink(), 1, "one", { signal: done })).rejects.toBe(reason);

    const url = `redis://127.0.0.1:${await freePort()}`;
    const cancel = new AbortController();
    const waiting = commit(openSink({ url }), 1, "one", { signal: cancel.signal });
    cancel.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expectNothingStored();
  });
});

describe("a server that is not there", () => {
  it("is unreachable, and nothing that was asked meanwhile is done later", async () => {
    const port = await freePort();
    const sink = openSink({ url: `redis://127.0.0.1:${port}` });
    const fault = await faultOf(commit(sink, 1, "one", { timeoutMs: 100 }));
    expect(fault).toBeInstanceOf(SinkUnreachableError);
    expect(fault.definite).toBe(true);

    await openProxy(port);
    expect((await sink.readResult(key)).value).toBeUndefined();
    await expectNothingStored();
  });

  it("is found when it comes within the deadline", async () => {
    const port = await freePort();
    const sink = openSink({ url: `redis://127.0.0.1:${port}`, timeoutMs: 20_000 });
    const committed = commit(sink, 1, "one");
    await faultOf(sink.readResult(key, { timeoutMs: 50 }));
    await openProxy(port);
    expect(await committed).toEqual({ outcome: "committed", revision: 1 });
  });
});

describe("a script that the server has forgotten", () => {
  it("is sent again, in the middle of a claim too", async () => {
    const sink = openSink();
    for (const sequence of [1, 2]) {
      await sink.advanceFence({ key, job: "job", token: token(sequence) });
      await redis.script("FLUSH");
      expect(await commit(sink, sequence, "v")).toMatchObject({ outcome: "committed" });
      await redis.script("FLUSH");
    }
    expect((await sink.readResult(key)).matches).toBe(true);
  });
});

describe("a server that is busy with a long script", () => {
  it("is waited for until the script has ended", async () => {
    const sink = openSink({ timeoutMs: 20_000 });
    await sink.readResult(key);
    const other = new Redis(server.url);
    const script = other.eval("while true do end", 0).catch((error: Error) => error.message);
    await vi.waitFor(async () => await expect(redis.ping()).rejects.toThrow(/BUSY/));
    const committed = commit(sink, 1, "one");
    await redis.script("KILL");
    expect(await committed).toEqual({ outcome: "committed", revision: 1 });
    expect(await script).toMatch(/killed/i);
    await other.quit();
  });
});

describe("a server that is loading its data", () => {
  it("is waited for until it has loaded", async () => {
    const refusals = 3;
    const front = await startLoadingFront({ targetPort: server.port, refusals });
    const sink = openSink({ url: `redis://127.0.0.1:${front.port}`, timeoutMs: 20_000 });
    expect(await commit(sink, 1, "one")).toEqual({ outcome: "committed", revision: 1 });
    expect(front.refused()).toBe(refusals);
  });

  it("that goes on loading has certainly not written anything at the deadline", async () => {
    const refusals = Number.POSITIVE_INFINITY;
    const front = await startLoadingFront({ targetPort: server.port, refusals });
    const sink = openSink({ url: `redis://127.0.0.1:${front.port}` });
    const fault = await faultOf(commit(sink, 1, "one", { timeoutMs: 150 }));
    expect(fault).toBeInstanceOf(SinkUnreachableError);
    expect(fault.message).toContain("LOADING");
    expect(fault.definite).toBe(true);
  });
});

describe("a replica", () => {
  it("takes no writes, still tells what is stale, and is usable when it is promoted", async () => {
    const replica = await startRedis({ args: [] });
    onTestFinished(() => replica.stop());
    const admin = new Redis(replica.url);
    const sink = openSink({ url: replica.url });
    await commit(sink, 5, "five");
    const connectionId = async () =>
      /^id=(\d+) .* name=fencekeeper /m.exec(String(await admin.client("LIST")))?.[1];
    const first = await connectionId();
    await admin.replicaof("127.0.0.1", await freePort());

    expect(await faultOf(commit(sink, 6, "six"))).toBeInstanceOf(SinkReadOnlyError);
    const advance = sink.advanceFence({ key, job: "job", token: token(6) });
    expect(await faultOf(advance)).toBeInstanceOf(SinkReadOnlyError);
    expect(await commit(sink, 4, "late")).toEqual({ outcome: "stale", fenceText: token(5).text });
    // Another connection, which may find another primary behind the same name.
    expect(await connectionId()).toMatch(/^\d+$/);
    expect(await connectionId()).not.toBe(first);
    expect(await admin.get(key)).toBe("five");
    expect(await admin.hget(`fence:{${key}}`, "token")).toBe(token(5).text);

    await admin.config("SET", "replica-serve-stale-data", "no");
    expect(await faultOf(commit(sink, 6, "six"))).toBeInstanceOf(SinkReadOnlyError);
    await admin.replicaof("NO", "ONE");
    expect(await commit(sink, 6, "six")).toEqual({ outcome: "committed", revision: 1 });
    await admin.quit();
  });
});

describe("a server that is out of memory", () => {
  it("changes nothing, and still tells what is stale", async () => {
    const sink = openSink();
    await commit(sink, 5, "five");
    const before = await redis.dumpBuffer(`fence:{${key}}`);
    await redis.config("SET", "maxmemory", "1");
    onTestFinished(async () => {
      await redis.config("SET", "maxmemory", "0");
    });
    const advance = sink.advanceFence({ key, job: "job", token: token(6) });
    expect(await faultOf(advance)).toBeInstanceOf(SinkOutOfMemoryError);
    expect(await faultOf(commit(sink, 6, "six"))).toBeInstanceOf(SinkOutOfMemoryError);
    expect(await commit(sink, 4, "late")).toMatchObject({ outcome: "stale" });
    expect(await commit(sink, 5, "five")).toMatchObject({ outcome: "duplicate" });
    expect(await redis.get(key)).toBe("five");
    expect(await redis.dumpBuffer(`fence:{${key}}`)).toEqual(before);
  });
});

describe("a server that refuses us", () => {
  const asUser = (user: string, password: string) =>
    server.url.replace("redis://", `redis://${user}:${password}@`);

  it.each(["hset", "set", "eval"])("changes nothing for a user without %s", async (command) => {
    const rights = ["~*", "+@all", `-${command}`, "-evalsha"];
    await redis.acl("SETUSER", "limited", "reset", "on", ">secret", ...rights, "+evalsha");
    const fault = await faultOf(commit(openSink({ url: asUser("limited", "secret") }), 1, "one"));
    expect(fault).toBeInstanceOf(SinkDeniedError);
    if (await isRedis7()) expect(fault.message).toMatch(new RegExp(command, "i"));
    expect(fault.definite).toBe(true);
    await expectNothingStored();
  });

  it("says so when a script may not read", async () => {
    const rights = ["~*", "+@all", "-hgetall"];
    await redis.acl("SETUSER", "limited", "reset", "on", ">secret", ...rights);
    await commit(openSink(), 1, "one");
    const read = openSink({ url: asUser("limited", "secret") }).readResult(key);
    expect(await faultOf(read)).toBeInstanceOf(SinkDeniedError);
  });

  it("says so for a wrong password at once, and shows no secret", async () => {
    await redis.acl("SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all");
    const sink = openSink({ url: asUser("limited", "hunter2"), timeoutMs: 1_000_000 });
    const fault = await faultOf(commit(sink, 1, "the value"));
    expect(fault).toBeInstanceOf(SinkDeniedError);
    expect(inspect(fault, { depth: 10, showHidden: true })).not.toMatch(/hunter2|the value/);
    await expectNothingStored();
  });

  it("says so when a password is needed and none is given", async () => {
    const locked = await startRedis({ args: ["--requirepass", "secret"] });
    onTestFinished(() => locked.stop());
    const sink = openSink({ url: locked.url, timeoutMs: 1_000_000 });
    expect(await faultOf(commit(sink, 1, "one"))).toBeInstanceOf(SinkDeniedError);
    const allowed = openSink({ url: locked.url.replace("//", "//:secret@") });
    expect(await commit(allowed, 1, "one")).toMatchObject({ outcome: "committed" });
  });

  it("never writes to database 0 when the database asked for does not exist", async () => {
    const sink = openSink({ url: `${server.url}/9999`, timeoutMs: 1_000_000 });
    const calls = [commit(sink, 1, "one"), commit(sink, 2, "two"), commit(sink, 3, "three")];
    for (const call of calls) expect(await faultOf(call)).toBeInstanceOf(ConfigurationError);
    await expectNothingStored();
  });

  it("shows neither value nor password in the cause of any error", async () => {
    const { proxy, sink } = await openProxied({ timeoutMs: 200 });
    proxy.holdRequests();
    const fault = await faultOf(commit(sink, 1, "the value"));
    expect(inspect(fault, { depth: 10, showHidden: true })).not.toContain("the value");
  });
});

describe("a frozen server", () => {
  it("holds no call beyond its deadline, and none is lost or done twice", async () => {
    const frozen = await startRedis({ args: [] });
    onTestFinished(() => frozen.stop());
    const sink = openSink({ url: frozen.url });
    await sink.readResult(key);
    await frozen.pause();

    const [written, read, fresh] = await Promise.all([
      faultOf(commit(sink, 1, "one", { timeoutMs: 300 })),
      faultOf(sink.readResult(key, { timeoutMs: 300 })),
      faultOf(commit(openSink({ url: frozen.url }), 2, "two", { timeoutMs: 300 })),
    ]);
    expect(written).toBeInstanceOf(SinkOutcomeUnknownError);
    expect(read).toBeInstanceOf(SinkUnreachableError);
    expect(fresh).toBeInstanceOf(SinkUnreachableError);
    expect([written.definite, read.definite, fresh.definite]).toEqual([false, true, true]);

    await frozen.resume();
    expect(["committed", "duplicate"]).toContain((await commit(sink, 1, "one")).outcome);
    const { value, fence } = await sink.readResult(key);
    expect(value?.toString()).toBe("one");
    expect(fence?.committed?.revision).toBe(1);
  });

  it("does not hold up close, which ends the calls under way and refuses later ones", async () => {
    const frozen = await startRedis({ args: [] });
    onTestFinished(() => frozen.stop());
    const sink = openRedisSink({ url: frozen.url, timeoutMs: 1_000_000 });
    await sink.readResult(key);
    await frozen.pause();
    const underWay = faultOf(commit(sink, 1, "one"));
    await Promise.all([sink.close(), sink.close()]);
    expect(await underWay).toBeInstanceOf(SinkOutcomeUnknownError);
    const later = await faultOf(commit(sink, 2, "two"));
    expect(later).toBeInstanceOf(SinkUnreachableError);
    expect(later.message).toContain("closed");
    await sink.close();
  });
});

describe("close", () => {
  it("waits for the replies of the calls under way", async () => {
    const sink = openSink();
    await sink.readResult(key);
    const committed = commit(sink, 1, "one");
    await sink.close();
    expect(await committed).toEqual({ outcome: "committed", revision: 1 });
  });

  it("ends a sink that has not connected, cannot connect, or lost its server", async () => {
    await openSink().close();

    const url = `redis://127.0.0.1:${await freePort()}`;
    const waiting = openSink({ url, timeoutMs: 1_000_000 });
    const fault = faultOf(waiting.readResult(key));
    await waiting.close();
    expect(await fault).toBeInstanceOf(SinkUnreachableError);

    const gone = await startRedis({ args: [] });
    const sink = openSink({ url: gone.url });
    await sink.readResult(key);
    await gone.stop();
    await sink.close();
  });
});
