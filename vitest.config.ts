import { defineConfig, type Plugin } from "vitest/config";

/** Worker threads get no file of vitest's making: in the tests, too, a session's thread runs the built one. */
const builtThreads: Plugin = {
  name: "built-threads",
  transform: (code, id) =>
    id.endsWith("/lib/zookeeper/thread/client-thread.ts")
      ? code.replace(
          '"./session-thread.js"',
          '"../../../dist/lib/zookeeper/thread/session-thread.js"',
        )
      : undefined,
};

export default defineConfig({
  plugins: [builtThreads],
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    // The native ZooKeeper client pings from the thread it runs on: every test file gets a process of its own.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
});
