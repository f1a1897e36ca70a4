/** Servers in containers, where a Docker daemon answers; skipped where none does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { askOverTcp } from "../../recipes/servers/ask-over-tcp.js";
import type { Server } from "../../recipes/servers/server.js";
import { startRedis, startServers } from "../../recipes/servers/start-servers.js";

/** With FENCEKEEPER_SERVERS=docker a Docker that does not work is a failure; otherwise these tests are skipped. */
async function dockerWorks(): Promise<boolean> {
  if (process.env.FENCEKEEPER_SERVERS) return process.env.FENCEKEEPER_SERVERS === "docker";
  try {
    await (await startRedis({ source: "docker" })).stop();
    return true;
  } catch (error) {
    console.error(`the tests of servers in Docker are skipped: ${error}`);
    return false;
  }
}

const usable = await dockerWorks();

function ask({ host, port }: Server, request: string, timeoutMs = 2000): Promise<string> {
  return askOverTcp({ host, port, request, timeoutMs });
}

const PING = "PING\r\nQUIT\r\n";

describe.skipIf(!usable)("servers in Docker", () => {
  it("start with their options, answer, and are gone after the stop", async () => {
    const servers = await startServers({
      source: "docker",
      zookeeper: { tickTimeMs: 500, maxSessionTimeoutMs: 7000 },
      redis: { args: ["--maxmemory", "3mb"] },
    });
    onTestFinished(() => servers.stop());
    const config = await ask(servers.zookeeper, "conf");
    expect(config).toMatch(/^tickTime=500$/m);
    expect(config).toMatch(/^maxSessionTimeout=7000$/m);
    expect(await ask(servers.zookeeper, "wchs")).not.toContain("not executed");
    expect(await ask(servers.redis, "CONFIG GET maxmemory\r\nQUIT\r\n")).toContain("3145728");
    await servers.stop();
    expect(await ask(servers.redis, PING)).toBe("");
    await servers.stop(); // a second time does nothing
  });

  it("are silent while paused, and have their data again after a crash", async () => {
    await using redis = await startRedis({ source: "docker" });
    await ask(redis, "SET kept yes\r\nQUIT\r\n");
    await redis.pause();
    expect(await ask(redis, PING, 300)).toBe("");
    await redis.resume();
    await vi.waitFor(async () => expect(await ask(redis, PING)).toContain("+PONG"));
    await redis.pause();
    await redis.kill(); // also out of a pause
    await redis.restart();
    expect(await ask(redis, "GET kept\r\nQUIT\r\n")).toContain("yes");
    expect(await redis.logTail()).toContain("Ready to accept connections");
  });

  it("say which image cannot be had, when Docker alone may be used", async () => {
    const end = startRedis({ source: "docker", images: { redis: "fencekeeper.invalid/none:1" } });
    await expect(end).rejects.toThrow(/the image fencekeeper\.invalid\/none:1 cannot be pulled/);
  });

  it("are gone when the process that started them was killed", async () => {
    const module = new URL("../../dist/recipes/servers/start-servers.js", import.meta.url);
    const text = `
      import { startRedis } from ${JSON.stringify(module)};
      const redis = await startRedis({ source: "docker" });
      process.stdout.write(JSON.stringify({ host: redis.host, port: redis.port }));
      process.on("message", () => {});
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", text], {
      stdio: ["ignore", "pipe", "ignore", "ipc"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const [address] = (await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, "data"),
      once(child, "exit").then(() => Promise.reject(new Error("the starter has ended"))),
    ])) as [Buffer];
    const redis = JSON.parse(String(address)) as Server;
    expect(await ask(redis, PING)).toContain("+PONG");
    child.kill("SIGKILL");
    // Where the clean-up of testcontainers does it, it waits ten seconds first.
    await vi.waitFor(async () => expect(await ask(redis, PING)).toBe(""), {
      timeout: 40_000,
      interval: 250,
    });
  });
});
