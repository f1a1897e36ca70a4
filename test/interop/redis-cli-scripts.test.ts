/**
 * Goal: a script of the shell shares a key with the library. Method: the example of docs/scripts.md with `redis-cli` is
 * run as it stands there, against a real server, by turns with the TypeScript sink.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";
import { exampleOf } from "../support/scripts-page.js";
import { missingPackage } from "../support/system-package.js";

const missing = await missingPackage({ name: "redis-tools", check: ["redis-cli", "--version"] });

/** The key of the example, whose floor is written out there. */
const key = "report";

const claim = (sequence: number) => ({
  ...{ key, job: "nightly", token: makeToken({ era: 0, generation: 4294967298n, sequence }) },
});

describe.skipIf(missing)(`redis-cli${missing === undefined ? "" : ` (${missing})`}`, () => {
  let server: TestRedis;
  let sink: Sink;

  beforeAll(async () => {
    server = await startRedis();
    sink = openRedisSink({ url: server.url });
  });

  afterAll(async () => {
    await sink?.close();
    await server?.stop();
  });

  beforeEach(() => rawRedisAt(server.url, "FLUSHALL"));

  /** The reply, an item a line. */
  async function commit(sequence: number, value: string): Promise<string[]> {
    const { token, job } = claim(sequence);
    const names = { FENCEKEEPER_TOKEN: token.text, FENCEKEEPER_JOB: job, value };
    const env = { ...process.env, REDIS_URL: server.url, ...names };
    const example = exampleOf("sh", "redis-cli -u");
    const { stdout } = await promisify(execFile)("sh", ["-c", example], { env });
    return stdout.trim().split("\n");
  }

  it("commits what the sink reads then, and knows again", async () => {
    await sink.advanceFence(claim(5));
    expect(await commit(5, "of the shell")).toEqual(["committed", "1"]);
    expect(await commit(5, "of the shell")).toEqual(["duplicate", "1"]);
    const { value, matches, fence } = await sink.readResult(key);
    expect([value?.toString(), matches, fence?.job]).toEqual(["of the shell", true, "nightly"]);
  });

  it("is refused below the fence of the sink, and told where that is", async () => {
    await sink.commitResult({ ...claim(7), value: "newer" });
    expect(await commit(6, "late")).toEqual(["stale", claim(7).token.text]);
    expect((await sink.readResult(key)).value?.toString()).toBe("newer");
  });

  it("is told that Redis has lost the fence, and writes nothing", async () => {
    await sink.advanceFence(claim(5));
    await rawRedisAt(server.url, "FLUSHALL");
    expect(await commit(5, "value")).toEqual(["lost"]);
    expect((await sink.readResult(key)).value).toBeUndefined();
  });
});
