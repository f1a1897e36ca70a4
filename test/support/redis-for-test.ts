/**
 * A Redis server of its own for one test file, from the place where all servers come from.
 */
import { createServer } from "node:net";
import type { RedisServer, ServerSource } from "../../recipes/servers/server.js";
import { startRedis as startServer } from "../../recipes/servers/start-servers.js";

export type TestRedis = RedisServer;

export interface TestRedisOptions {
  args?: string[];
  /** `programs` for a server that other servers reach, or that comes back at its address: containers change theirs. */
  source?: ServerSource | undefined;
}

export function startRedis({ args = [], source }: TestRedisOptions = {}): Promise<TestRedis> {
  return startServer({ source, redis: { args } });
}

/** A port of this machine on which nobody listens now. */
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
