/**
 * Entry point of a thread that runs simulations: takes portions of seeds until there is none left.
 */
import { parentPort, workerData } from "node:worker_threads";
import type { FaultName } from "./faults.js";
import { simulate } from "./simulate.js";

/** What is told of one seed; its history can be had again. */
export interface SeedResult {
  seed: number;
  violations: string[];
}

const faults = workerData as readonly FaultName[] | undefined;

// Errors are told by their message here, and simulations make a great many of them.
Error.stackTraceLimit = 0;

parentPort?.on("message", async (portion: { from: number; to: number } | undefined) => {
  if (portion === undefined) {
    parentPort?.close();
    return;
  }
  const results: SeedResult[] = [];
  for (let seed = portion.from; seed < portion.to; seed += 1) {
    const { violations } = await simulate(faults === undefined ? { seed } : { seed, faults });
    results.push({ seed, violations });
  }
  parentPort?.postMessage(results);
});
