import { mergeConfig } from "vitest/config";
import ordinary from "./vitest.config.js";

/** The benchmarks are run by themselves: absolute speed is no matter for a test. */
export default mergeConfig(ordinary, {
  test: { include: ["test/bench/**/*.bench.ts"], maxWorkers: 1 },
});
