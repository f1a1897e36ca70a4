/**
 * Before all tests: builds what is shipped, and starts the servers that the test files share; after them, removes them.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { startServers } from "../../recipes/servers/start-servers.js";

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
  // A user's own servers are used only when these are set for it.
  const { FENCEKEEPER_TEST_ZOOKEEPER: zookeeper, FENCEKEEPER_TEST_REDIS: redis } = process.env;
  const servers = await startServers({
    given: { zookeeper, redis },
    // tests look into claim paths, so an empty one is not removed between two of their steps
    zookeeper: { containerCheckIntervalMs: 86_400_000 },
    say: (line) => console.error(`servers: ${line}`),
  });
  project.provide("zookeeper", servers.zookeeper.connect);
  project.provide("redis", servers.redis.url);
  return () => servers.stop();
}
