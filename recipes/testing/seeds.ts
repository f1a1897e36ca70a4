/**
 * Many simulations, spread over threads: seeds in small portions to whichever thread is free.
 */
import { availableParallelism } from "node:os";
import { Worker as Thread } from "node:worker_threads";
import type { FaultName } from "./faults.js";
import type { SeedResult } from "./seeds-thread.js";

/** The entry point of the threads, beside this file. */
const ENTRY = new URL("./seeds-thread.js", import.meta.url);

const PORTION = 25;

const YOUNG_MB = 64;

export interface SeedsOptions {
  /** The first seed. */
  first: number;
  count: number;
  /** Default: one for each processor. */
  threads?: number;
  /** Which faults may happen. Default: all. */
  faults?: readonly FaultName[];
  /** No more seeds are begun once one was found that violates something. */
  untilViolation?: boolean;
  /** Ends the run after what is under way; what was found until then is told. */
  signal?: AbortSignal;
  /** How many have been done so far, and which of them violated something. */
  onProgress?: (done: number, violating: number) => void;
  /** A seed that violated something, as soon as it is known. */
  onViolating?: (result: SeedResult) => void;
}

export interface SeedsResult {
  done: number;
  /** In the order of their seeds. */
  violating: SeedResult[];
}

/** @throws what a thread could not go on after: a bug */
export async function runSeeds(options: SeedsOptions): Promise<SeedsResult> {
  const { first, count, untilViolation = false, signal } = options;
  const { onProgress = () => {}, onViolating = () => {} } = options;
  const threads = Math.min(options.threads ?? availableParallelism(), Math.ceil(count / PORTION));
  const violating: SeedResult[] = [];
  let done = 0;
  let next = first;
  const portion = () => {
    const from = next;
    const found = untilViolation && violating.length > 0;
    if (from >= first + count || found || signal?.aborted) return undefined;
    next = Math.min(from + PORTION, first + count);
    return { from, to: next };
  };
  const work = () => {
    return new Promise<void>((resolve, reject) => {
      const thread = new Thread(ENTRY, {
        execArgv: [],
        workerData: options.faults,
        // A simulation makes much that does not live long.
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
      });
      const give = () => thread.postMessage(portion());
      thread.on("error", reject);
      thread.on("exit", () => resolve());
      thread.on("message", (results: SeedResult[]) => {
        done += results.length;
        const found = results.filter(({ violations }) => violations.length > 0);
        found.forEach(onViolating);
        violating.push(...found);
        onProgress(done, violating.length);
        give();
      });
      give();
    });
  };
  await Promise.all(Array.from({ length: Math.max(1, threads) }, work));
  violating.sort((a, b) => a.seed - b.seed);
  return { done, violating };
}
