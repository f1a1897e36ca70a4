/** Servers from the programs of this machine, which are fetched where that is our business. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { askOverTcp } from "../../recipes/servers/ask-over-tcp.js";
import type { Server, Servers } from "../../recipes/servers/server.js";
import { ServerStartError } from "../../recipes/servers/server-start-error.js";
import { startRedis, startServers, startZooKeeper } from "../../recipes/servers/start-servers.js";
import { isAlive } from "../support/alive.js";

function ask({ host, port }: Server, request: string, timeoutMs = 2000): Promise<string> {
  return askOverTcp({ host, port, request, timeoutMs });
}

/** A folder that all temporary folders of this test are made in. */
async function ownTemporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
  vi.stubEnv("TMPDIR", folder);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });
  return folder;
}

describe("one ZooKeeper and one Redis", () => {
  let servers: Servers;

  beforeAll(async () => {
    servers = await startServers({ source: "programs" });
  });
  afterAll(() => servers?.stop());

  it("answer as soon as the start is done, on loopback", async () => {
    expect(servers.source).toBe("programs");
    expect(servers.zookeeper.connect).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(servers.redis.url).toMatch(/^redis:\/\/127\.0\.0\.1:\d+$/);
    expect(await ask(servers.zookeeper, "ruok")).toBe("imok");
    expect(await ask(servers.redis, "PING\r\nQUIT\r\n")).toContain("+PONG");
  });

  it.each(["mntr", "wchs", "cons", "crst", "stat"])(
    "ZooKeeper answers %s, which tests and benchmarks ask for",
    async (word) => {
      expect(await ask(servers.zookeeper, word)).not.toContain("not executed");
    },
  );

  it.each(["zookeeper", "redis"] as const)(
    "%s is silent while paused, and answers again",
    async (kind) => {
      const request = kind === "zookeeper" ? "ruok" : "PING\r\nQUIT\r\n";
      await servers[kind].pause();
      expect(await ask(servers[kind], request, 200)).toBe("");
      await servers[kind].resume();
      await vi.waitFor(async () => expect(await ask(servers[kind], request)).not.toBe(""));
    },
  );

  it("Redis has its data again after a crash", async () => {
    const { redis } = servers;
    await ask(redis, "SET kept yes\r\nQUIT\r\n");
    const before = redis.pid;
    await redis.kill();
    expect(redis.pid).toBeUndefined();
    await expect(redis.pause()).rejects.toThrow("Redis does not run");
    expect(await ask(redis, "PING\r\n")).toBe("");
    await redis.restart();
    expect(redis.pid).not.toBe(before);
    expect(await ask(redis, "GET kept\r\nQUIT\r\n")).toContain("yes");
  });

  it("ZooKeeper is restarted in place, also when it was paused", async () => {
    const { zookeeper } = servers;
    const address = zookeeper.connect;
    await zookeeper.pause();
    await zookeeper.restart();
    expect(zookeeper.connect).toBe(address);
    expect(await ask(zookeeper, "ruok")).toBe("imok");
  });
});

describe("options", () => {
  it("reach ZooKeeper", async () => {
    await using zookeeper = await startZooKeeper({
      source: "programs",
      zookeeper: {
        tickTimeMs: 500,
        maxSessionTimeoutMs: 7000,
        config: { minSessionTimeout: "600" },
      },
    });
    const config = await ask(zookeeper, "conf");
    expect(config).toMatch(/^tickTime=500$/m);
    expect(config).toMatch(/^maxSessionTimeout=7000$/m);
    expect(config).toMatch(/^minSessionTimeout=600$/m);
  });

  it("reach Redis", async () => {
    await using redis = await startRedis({
      source: "programs",
      redis: { args: ["--maxmemory", "3mb"] },
    });
    expect(await ask(redis, "CONFIG GET maxmemory\r\nQUIT\r\n")).toContain("3145728");
  });
});

describe("the end of servers", () => {
  it("leaves no process and no folder", async () => {
    const folder = await ownTemporaryFolder();
    const redis = await startRedis({ source: "programs" });
    const { pid = 0 } = redis;
    expect(isAlive(pid)).toBe(true);
    expect(await readdir(folder)).toHaveLength(1);
    await redis.stop();
    expect(isAlive(pid)).toBe(false);
    expect(await readdir(folder)).toEqual([]);
    await redis.stop(); // a second time does nothing
  });

  it("takes a paused server too", async () => {
    const redis = await startRedis({ source: "programs" });
    const { pid = 0 } = redis;
    await redis.pause();
    await redis.stop();
    expect(isAlive(pid)).toBe(false);
  });

  it("leaves servers alone that were given", async () => {
    await using redis = await startRedis({ source: "programs" });
    const given = await startRedis({ given: { redis: redis.url }, env: {} });
    await expect(given.kill()).rejects.toThrow(OptionError);
    await given.stop();
    expect(await ask(redis, "PING\r\nQUIT\r\n")).toContain("+PONG");
  });
});

describe("a server that does not come up", () => {
  it("ends in an error with the end of its log, and leaves nothing", async () => {
    const folder = await ownTemporaryFolder();
    const end = startRedis({ source: "programs", redis: { args: ["--no-such-option", "1"] } });
    await expect(end).rejects.toThrow(ServerStartError);
    await expect(end).rejects.toThrow(
      /Redis ended with status 1 while it started.*no-such-option/s,
    );
    expect(await readdir(folder)).toEqual([]);
  });

  it("ends in an error when it does not answer in time", async () => {
    const folder = await ownTemporaryFolder();
    const end = startZooKeeper({ source: "programs", startTimeoutMs: 50 });
    await expect(end).rejects.toThrow("ZooKeeper did not answer within 50 ms");
    expect(await readdir(folder)).toEqual([]);
  });

  it("is given up when the caller cancels, and its partner with it", async () => {
    const folder = await ownTemporaryFolder();
    const cancelled = new AbortController();
    const say = () => cancelled.abort(new Error("cancelled by the caller"));
    const end = startServers({ source: "programs", signal: cancelled.signal, say });
    await expect(end).rejects.toThrow("cancelled by the caller");
    expect(await readdir(folder)).toEqual([]);
  });
});
