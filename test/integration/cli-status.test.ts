/**
 * Goal: `status` and `get` tell people and programs the truth about claims, fences and results.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, inject, it, vi } from "vitest";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { cli, MAIN, startCli } from "../support/cli.js";
import { rawRedis } from "../support/raw-redis.js";
import { contendersOf, withSession } from "../support/raw-zookeeper.js";

const WAIT = { timeout: 30_000, interval: 20 };

let job: string;
let key: string;

beforeEach(() => {
  job = `job-${randomUUID()}`;
  key = `key-${job}`;
});

/** A line of shell with the addresses of the shared servers. */
function shell(line: string): Promise<{ status: number; stderr: string }> {
  const env = { ...process.env, REDIS_URL: inject("redis") };
  return new Promise((resolve) => {
    execFile("bash", ["-o", "pipefail", "-c", line], { env }, (error, _stdout, stderr) => {
      resolve({ status: Number(error?.code ?? 0), stderr });
    });
  });
}

const lasting = () =>
  startCli(["run", job, "--key", key, "--", "sh", "-c", "echo up; exec sleep 600"]);

describe("status", () => {
  it("says who holds, who waits, since when, and where the fence stands", async () => {
    const holder = lasting();
    await holder.until("up");
    startCli(["run", job, "--wait", "10m", "--", "true"]);
    await vi.waitFor(async () => expect(await contendersOf(job)).toHaveLength(2), WAIT);
    const { stdout, status } = await cli(["status", job, "--key", key]);
    expect(status).toBe(0);
    const text = stdout.toString();
    expect(text).toMatch(/^ {2}holds +0 {2}\S+:\d+ {2}since [\d.]+ (?:ms|s)$/m);
    expect(text).toMatch(/^ {2}waits +1 {2}\S+:\d+ {2}since/m);
    expect(text).toMatch(
      /^ {2}fence {2}0 \(\d{5}\.\d{20}\.0{10}\) open at .*, 0 stale writes refused$/m,
    );
    expect(text).toContain(`:${holder.child.pid} `);
  });

  it("gives the same to programs as JSON, for one job or for all that are claimed", async () => {
    const holder = lasting();
    await holder.until("up");
    const one = JSON.parse((await cli(["status", job, "--key", key, "--json"])).stdout.toString());
    expect(one).toMatchObject([
      { job, key, contenders: [{ sequence: 0, pid: holder.child.pid }], fence: { state: "open" } },
    ]);
    const all = JSON.parse((await cli(["status", "--json"])).stdout.toString());
    expect(all.map((each: { job: string }) => each.job)).toContain(job);
  });

  it("says that a job is free, and needs no Redis for that", async () => {
    const { stdout, status } = await cli(["status", job], { env: { REDIS_URL: undefined } });
    expect(status).toBe(0);
    expect(stdout.toString()).toBe(`${JSON.stringify(job)}  free\n`);
  });

  it("counts refused writes, and names strangers and persistent contenders", async () => {
    await cli(["run", job, "--key", key, "--era", "1", "--", "echo", "newer"]);
    const token = "00000.00000000000000000001.0000000000";
    await cli(["commit", "--key", key, "--job", job, "--token", token], { input: "late" });
    const name = `_c_${randomUUID()}-lock-0000000000`;
    await withSession((session) => session.create(`${claimPath(job)}/${name}`, "", "persistent"));
    await withSession((session) => session.create(`${claimPath(job)}/config`, "", "persistent"));
    const text = (await cli(["status", job, "--key", key])).stdout.toString();
    expect(text).toContain("1 stale write refused");
    expect(text).toContain("PERSISTENT: blocks the queue");
    expect(text).toContain("config is no contender");
  });
});

describe("get", () => {
  it("exits with 1 where there is no result, and prints nothing", async () => {
    const { status, stdout, stderr } = await cli(["get", key]);
    expect([status, stdout.toString()]).toEqual([1, ""]);
    expect(stderr).toContain("there is no result");
  });

  it("gives bytes that are no text in base64 as JSON, and as they are without it", async () => {
    await cli(["run", job, "--key", key, "--", "printf", "\\377\\000"]);
    const json = JSON.parse((await cli(["get", key, "--json"])).stdout.toString());
    expect(json).toMatchObject({ encoding: "base64", value: "/wA=", matches: true, revision: 1 });
    expect((await cli(["get", key])).stdout.equals(Buffer.from([255, 0]))).toBe(true);
  });

  it("reads a value that was there before fencing came, and the first commit takes it over", async () => {
    await rawRedis("SET", key, "legacy");
    const json = JSON.parse((await cli(["get", key, "--json"])).stdout.toString());
    expect(json).toMatchObject({ value: "legacy", token: null, state: null, matches: null });
    await cli(["run", job, "--key", key, "--", "printf", "fenced"]);
    expect((await cli(["get", key])).stdout.toString()).toBe("fenced");
  });

  it("exits with 74 and says why when its result cannot be written", async () => {
    await cli(["run", job, "--key", key, "--", "printf", "fenced"]);
    const end = await shell(`"${process.execPath}" "${MAIN}" get "${key}" > /dev/full`);
    expect(end.status).toBe(74);
    expect(end.stderr).toMatch(/could not be written to standard output: .*ENOSPC/);
  });

  it("ends quietly when its reader has seen enough", async () => {
    await cli(["run", job, "--key", key, "--", "head", "-c", "1000000", "/dev/zero"]);
    const end = await shell(`"${process.execPath}" "${MAIN}" get "${key}" | head -c 1 | wc -c`);
    expect(end).toEqual({ status: 0, stderr: "" });
  });

  it("warns when something has overwritten the result without a fence", async () => {
    await cli(["run", job, "--key", key, "--", "printf", "fenced"]);
    await rawRedis("SET", key, "overwritten");
    const { stdout, stderr, status } = await cli(["get", key]);
    expect([status, stdout.toString()]).toEqual([0, "overwritten"]);
    expect(stderr).toContain("without a fence");
  });

  it("with --wait ends as soon as a result is committed, and with --newer-than not before a newer one", async () => {
    const first = startCli(["get", key, "--wait", "30s"]);
    await cli(["run", job, "--key", key, "--", "printf", "one"]);
    expect(await first.ended).toMatchObject({ status: 0, stdout: Buffer.from("one") });
    const { token } = JSON.parse((await cli(["get", key, "--json"])).stdout.toString());
    const second = startCli(["get", key, "--wait", "30s", "--newer-than", token]);
    await cli(["run", job, "--key", key, "--", "printf", "two"]);
    expect(await second.ended).toMatchObject({ status: 0, stdout: Buffer.from("two") });
  });

  it("with --wait exits with 1 when nothing came in time, and says for how long it waited", async () => {
    const { status, stdout, stderr } = await cli(["get", key, "--wait", "100ms"]);
    expect([status, stdout.toString()]).toEqual([1, ""]);
    expect(stderr).toContain(`no result came to "${key}" within 100ms`);
    const old = startCli(["get", key, "--wait", "1", "--newer-than", "1"]);
    expect(await old.ended).toMatchObject({ status: 64 });
    const alone = await cli(["get", key, "--newer-than", "00000.00000000000000000001.0000000000"]);
    expect([alone.status, alone.stderr]).toEqual([64, expect.stringContaining("needs --wait")]);
  });
});
