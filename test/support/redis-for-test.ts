/**
 * A Redis server for one test file: the one at FENCEKEEPER_TEST_REDIS_URL, or a `redis-server` of our own on a free
 * port of this machine. Tests that change settings or stop the process pass `args`, and always get their own.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { vi } from "vitest";

export interface TestRedis {
  url: string;
  port: number;
  /** undefined when the server is not ours. */
  pid: number | undefined;
  stop(): Promise<void>;
  pause(): void;
  resume(): void;
}

/** `redis-check-rdb` is the same program, and a server when it is called by the server's name. */
const PROGRAMS = ["redis-server", "valkey-server", "redis-check-rdb", "valkey-check-rdb"];

export async function startRedis(options: { args?: string[] } = {}): Promise<TestRedis> {
  const given = process.env.FENCEKEEPER_TEST_REDIS_URL;
  if (given && options.args === undefined) return shared(given);

  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "fencekeeper-redis-"));
  const settings = { port, bind: "127.0.0.1", dir: directory, save: "", appendonly: "no" };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn(findProgram(), [...args, ...(options.args ?? [])], {
    argv0: "redis-server",
    stdio: "ignore",
  });
  const exited = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const signal = (name: NodeJS.Signals) => {
    if (server.exitCode === null) server.kill(name);
  };
  await vi.waitFor(() => answers(port), { timeout: 10_000, interval: 20 });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: server.pid,
    pause: () => signal("SIGSTOP"),
    resume: () => signal("SIGCONT"),
    async stop() {
      signal("SIGKILL");
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function shared(url: string): TestRedis {
  const notOurs = () => {
    throw new Error("the server at FENCEKEEPER_TEST_REDIS_URL is not ours to pause; pass args");
  };
  const port = Number(new URL(url).port || 6379);
  return { url, port, pid: undefined, pause: notOurs, resume: notOurs, stop: async () => {} };
}

function findProgram(): string {
  const named = process.env.FENCEKEEPER_TEST_REDIS_PROGRAM;
  if (named) return named;
  const folders = (process.env.PATH ?? "").split(delimiter);
  for (const program of PROGRAMS) {
    const found = folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
    if (found) return found;
  }
  throw new Error("no redis-server was found; install Redis, or set FENCEKEEPER_TEST_REDIS_URL");
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = address !== null && typeof address === "object" ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** Settles when the server greets a PING, whatever it says: it may ask for a password. */
function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    socket.once("error", reject);
    socket.once("connect", () => socket.write("PING\r\n"));
    socket.once("data", () => {
      socket.destroy();
      resolve();
    });
  });
}
