/**
 * Goal: a service in Python shares keys with the library. Method: the example of docs/scripts.md is run as it stands
 * there, against a real server, by turns with the TypeScript sink.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { fenceKeyOf, floorKeyOf } from "../../lib/redis/fence-key.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { scriptText } from "../../lib/redis/script-files.js";
import { storedJob } from "../../lib/redis/stored-form.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { startCutProxy } from "../support/cut-proxy.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";
import { exampleOf } from "../support/scripts-page.js";
import { missingPackage } from "../support/system-package.js";

const PYTHON = "/usr/bin/python3";
const missing = await missingPackage({
  name: "python3-redis",
  check: [PYTHON, "-c", "import redis"],
});

const token = (sequence: number) => makeToken({ era: 0, generation: 4294967298n, sequence });

interface End {
  status: number | string | null | undefined;
  said: string;
}

describe.skipIf(missing)(
  `a service in Python${missing === undefined ? "" : ` (${missing})`}`,
  () => {
    let folder: string;
    let server: TestRedis;
    let redis: Redis;
    let sink: Sink;
    let key = "";
    let run = 0;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "fencekeeper-python-"));
      await writeFile(join(folder, "commit.py"), exampleOf("python", "import redis"));
      server = await startRedis();
      redis = new Redis(server.url);
      sink = openRedisSink({ url: server.url });
    });

    afterAll(async () => {
      await Promise.all([sink?.close(), redis?.quit()]);
      await server?.stop();
      await rm(folder, { recursive: true, force: true });
    });

    beforeEach(() => {
      key = `python:${run++}`;
    });

    const claim = (sequence: number) => ({ key, job: "job", token: token(sequence) });

    function python(args: string[], env: Record<string, string> = {}, input = ""): Promise<End> {
      return new Promise((resolve) => {
        const options = { cwd: folder, env: { ...process.env, REDIS_URL: server.url, ...env } };
        const child = execFile(PYTHON, args, options, (error, stdout, stderr) => {
          resolve({ status: error === null ? 0 : error.code, said: (stdout + stderr).trim() });
        });
        child.stdin?.end(input);
      });
    }

    /** The example, as a command under `fencekeeper run`. */
    const commit = (sequence: number, value: string, env: Record<string, string> = {}) =>
      python(
        ["commit.py", key],
        { FENCEKEEPER_TOKEN: token(sequence).text, FENCEKEEPER_JOB: "job", ...env },
        value,
      );

    it("commits under its token, and the sink reads it", async () => {
      await sink.advanceFence(claim(5));
      expect(await commit(5, "zażółć")).toEqual({ status: 0, said: "committed 1" });
      const { value, matches, fence } = await sink.readResult(key);
      expect([value?.toString(), matches, fence?.tokenText]).toEqual([
        "zażółć",
        true,
        token(5).text,
      ]);
      expect(await sink.commitResult({ ...claim(5), value: "zażółć" })).toEqual({
        ...{ outcome: "duplicate", revision: 1 },
      });
    });

    it("is refused below the fence of the sink, and the sink below its own", async () => {
      await sink.commitResult({ ...claim(7), value: "newer" });
      expect(await commit(6, "late")).toEqual({ status: 73, said: `stale ${token(7).text}` });
      expect((await sink.readResult(key)).value?.toString()).toBe("newer");
      await sink.advanceFence(claim(8));
      expect(await commit(8, "of Python")).toMatchObject({ said: "committed 1" });
      const late = await sink.commitResult({ ...claim(7), value: "late" });
      expect(late).toEqual({ outcome: "stale", fenceText: token(8).text });
    });

    it("raises the fence again that Redis has lost", async () => {
      await sink.advanceFence(claim(5));
      await redis.del(fenceKeyOf(key));
      expect(await commit(5, "value")).toMatchObject({ said: "committed 1" });
    });

    it("asks again after a lost reply, and learns what became of its write", async () => {
      await redis.script("LOAD", scriptText("commitResult"));
      await sink.advanceFence(claim(5));
      const proxy = await startCutProxy({ targetPort: server.port });
      onTestFinished(() => proxy.stop());
      proxy.cutNextReply();
      const end = await commit(5, "value", { REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
      expect(end).toEqual({ status: 0, said: "duplicate 1" });
    });

    it("loads the scripts into a server that has forgotten them", async () => {
      await redis.script("FLUSH");
      await sink.advanceFence(claim(5));
      expect(await commit(5, "value")).toMatchObject({ said: "committed 1" });
    });

    it("finds the same keys and writes jobs in the same form", async () => {
      const names = ["report", "{eu}:report", "a:{b}:{c}", "zażółć", "{a", "long".repeat(50)];
      const jobs = ["job", "j".repeat(65), "sha256:x", "ż".repeat(32), "ż".repeat(33)];
      const program = `import json, commit
print(json.dumps([[commit.keys_of(key) for key in ${JSON.stringify(names)}],
  [commit.stored_job(job) for job in ${JSON.stringify(jobs)}]]))`;
      const { said } = await python(["-c", program]);
      expect(JSON.parse(said)).toEqual([
        names.map((name) => [name, fenceKeyOf(name), floorKeyOf(name)]),
        jobs.map(storedJob),
      ]);
    });

    it.each(["", "a}", "{}x", "{a}", "fence:x"])(
      "refuses the key %j, as the sink does",
      async (bad) => {
        expect(() => fenceKeyOf(bad)).toThrow();
        const end = await python(["-c", `import commit; commit.keys_of(${JSON.stringify(bad)})`]);
        expect(end.said).toContain("ValueError");
      },
    );
  },
);
