/**
 * A Redis server of its own for one test file, from the place where all servers come from.
 */
import { createServer } from "node:net";
import type { RedisServer } from "../../recipes/servers/server.js";
import { startRedis as startServer } from "../../recipes/servers/start-servers.js";

export type TestRedis = RedisServer;

export function startRedis({ args = [] }: { args?: string[] } = {}): Promise<TestRedis> {
  return startServer({ redis: { args } });
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
