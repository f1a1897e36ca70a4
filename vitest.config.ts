import { defineConfig, type Plugin } from "vitest/config";

/** Worker threads get no file of vitest's making: in the tests, too, a session's thread runs the built one. */
const builtThreads: Plugin = {
  name: "built-threads",
  transform: (code, id) =>
    /\/lib\/zookeeper\/(thread\/client-thread|tls\/tunnel)\.ts$/.test(id)
      ? code.replace(
          /"\.\/(session|tunnel)-thread\.js"/,
          (_text, name) =>
            `"../../../dist/lib/zookeeper/${name === "tunnel" ? "tls" : "thread"}/${name}-thread.js"`,
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
