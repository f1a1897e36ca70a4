/**
 * Goal: the production recipes keep the promise in far more faulty schedules than a real server could be put through.
 * Method: virtual time, faults drawn from a seed, invariants checked on each history. FENCEKEEPER_SEEDS=n plays so
 * many, FENCEKEEPER_SEED=n begins with that one.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Claim } from "../../recipes/claim.js";
import { claim } from "../../recipes/claim.js";
import { FAULT_NAMES, JOB, simulate, type Worker } from "../../recipes/testing/index.js";

const MAIN = fileURLToPath(new URL("../../dist/recipes/testing/main.js", import.meta.url));
const { FENCEKEEPER_SEED = "1", FENCEKEEPER_SEEDS = "20000" } = process.env;

interface Run {
  status: number;
  stdout: string;
  stderr: string;
}

function simulateCommand(...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe("the production code under simulated faults", () => {
  it(`keeps every invariant in ${FENCEKEEPER_SEEDS} schedules`, { timeout: 900_000 }, async () => {
    const run = await simulateCommand("--seeds", FENCEKEEPER_SEEDS, "--seed", FENCEKEEPER_SEED);
    console.log(run.stdout.trim());
    expect(run.stdout + run.stderr).toContain(": 0 with violations");
    expect(run.status).toBe(0);
  });

  it.each(FAULT_NAMES)(
    "keeps every invariant when nothing but this goes wrong: %s",
    async (name) => {
      for (let seed = 1; seed <= 20; seed += 1) {
        const { violations, history } = await simulate({ seed, faults: [name] });
        expect(violations, `seed ${seed}\n${history.join("\n")}`).toEqual([]);
      }
    },
  );

  it("loses no claim when nothing goes wrong, and none by a main thread that is busy", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const lost: string[] = [];
      const work = holdOnce({ busyMs: 8_000, onEnd: (ended) => lost.push(...lossOf(ended)) });
      const { violations } = await simulate({ seed, faults: [], work });
      expect(violations, `seed ${seed}`).toEqual([]);
      expect(lost, `seed ${seed}`).toEqual([]);
    }
  });

  it("takes the claim from a main thread that is stuck for longer than it may be", async () => {
    const lost: string[] = [];
    const work = holdOnce({ busyMs: 30_000, onEnd: (ended) => lost.push(...lossOf(ended)) });
    await simulate({ seed: 1, faults: [], workers: 1, work });
    expect(lost).toEqual(["deadline"]);
  });
});

describe("a simulation", () => {
  it("has the same history for the same seed, to the byte, and another one for another", async () => {
    const [first, again, other] = [
      await simulate({ seed: 7 }),
      await simulate({ seed: 7 }),
      await simulate({ seed: 8 }),
    ];
    expect(again.history.join("\n")).toBe(first.history.join("\n"));
    expect(other.history).not.toEqual(first.history);
  });

  it("tells what a user's own work does wrong, by its seed", async () => {
    const work = async (worker: Worker) => {
      const answer = await claim({ zookeeper: worker.zookeeper, job: JOB, waitMs: 60_000 });
      if (answer.outcome === "busy") return;
      // forgets to release, and goes on working after it has closed
      worker.holds(answer.claim);
      await worker.zookeeper.close();
      await worker.pause(1_000);
      if (answer.claim.signal.aborted) worker.violated("worked without its claim");
    };
    const { violations } = await simulate({ seed: 3, faults: [], work });
    expect(violations.join("\n")).toContain("A: worked without its claim");
  });

  it("lets work end before its process dies", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { violations } = await simulate({ seed, faults: ["crash"], work: async () => {} });
      expect(violations).toEqual([]);
    }
  });

  it("refuses a seed that is no whole number", async () => {
    await expect(simulate({ seed: 0.5 })).rejects.toBeInstanceOf(RangeError);
  });
});

describe("npm run simulate", () => {
  it("prints a readable trace of one seed, with times, who and what", async () => {
    const run = await simulateCommand("--seeds", "1", "--seed", "7", "--trace");
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/^seed 7\n/);
    expect(run.stdout).toMatch(/^ +\d+\.\d{3} s {2}faults {4}\S+/m);
    expect(run.stdout).toContain("every invariant held");
  });

  it("tells its progress on standard error, and its result on standard output", async () => {
    const run = await simulateCommand("--seeds", "30", "--threads", "2");
    expect(run.stdout).toMatch(/^30 schedules from seed 1: 0 with violations/);
    expect(run.stderr).toMatch(/^\d+ of 30 schedules, 0 with violations, \d+ s left$/m);
  });

  it("tells what it has found so far when it is interrupted", async () => {
    const child = execFile(process.execPath, [MAIN, "--seeds", "1000000"]);
    let stdout = "";
    child.stdout?.on("data", (data) => {
      stdout += data;
    });
    await new Promise<void>((resolve) => child.stderr?.once("data", () => resolve())); // its first progress
    child.kill("SIGINT");
    await new Promise<void>((resolve) => child.once("close", () => resolve()));
    expect(stdout).toMatch(/^\d+ schedules from seed 1: 0 with violations/);
  });

  it.each([["--seed", "x"], ["--seeds", "0"], ["--unknown"], ["extra"]])(
    "refuses wrong usage with 64: %s %s",
    async (...args) => {
      const run = await simulateCommand(...args.filter((arg) => arg !== undefined));
      expect(run.status).toBe(64);
      expect(run.stdout).toBe("");
      expect(run.stderr).not.toBe("");
    },
  );
});

/** Work that claims once, is busy under the claim, and says what became of it. */
function holdOnce({ busyMs, onEnd }: { busyMs: number; onEnd: (claim: Claim) => void }) {
  return async (worker: Worker): Promise<void> => {
    const answer = await claim({ zookeeper: worker.zookeeper, job: JOB, waitMs: 300_000 });
    if (answer.outcome === "busy") {
      worker.violated("was not granted the claim");
      return;
    }
    await worker.busy(busyMs);
    await worker.pause(1);
    onEnd(answer.claim);
    await answer.claim.release();
  };
}

function lossOf({ signal }: Claim): string[] {
  const { reason } = signal as { reason?: { reason?: string } };
  return signal.aborted ? [reason?.reason ?? "aborted"] : [];
}
