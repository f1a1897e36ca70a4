/**
 * One simulation from a seed: workers that run the production recipes, faults, and the invariants that must hold
 * whatever happens. The same seed gives the same history to the byte.
 */
import { claimPath } from "../../lib/zookeeper/paths.js";
import { FAULT_NAMES, FAULTS, type FaultName } from "./faults.js";
import { JOB } from "./job.js";
import { Random } from "./random.js";
import { standardWork } from "./standard-work.js";
import { GRANTED_TIMEOUT_MS, type Work, World } from "./world.js";

export interface SimulationOptions {
  /** A whole number; everything that happens follows from it. */
  seed: number;
  /** How many processes work. Default: 3. */
  workers?: number;
  /** How many ZooKeeper servers there are. Default: 1 or 3, from the seed. */
  servers?: number;
  /** Which faults may happen. Default: all. */
  faults?: readonly FaultName[];
  /** How long faults go on, in milliseconds of virtual time. Default: 4 000 to 16 000, from the seed. */
  faultsMs?: number;
  /** What each worker does. Default: claims and fenced runs of all kinds. */
  work?: Work;
}

export interface SimulationResult {
  seed: number;
  /** Invariants that did not hold, in words; empty when all did. */
  violations: string[];
  /** What happened: virtual time in milliseconds, who, and what. */
  history: string[];
}

/** Range of the time from one fault to the next, in milliseconds. */
const FAULT_EVERY_MS = [50, 1_200] as const;
const FAULT_LASTS_MS = [50, 9_000] as const;

const FAULTS_MS = [4_000, 6_000, 6_000, 9_000, 16_000];

/** After the faults have ended, everybody gets the job within this time. */
const LIMIT_MS = 40_000;

/** Numbers at which a counter may stand at the start: mostly 0, and sometimes where its end is near. */
const COUNTERS = [0, 2 ** 31 - 1 - 2 ** 20 - 5, 2 ** 31 - 6, 2 ** 31 - 1];
const NEAR_THE_END_SHARE = 0.06;

/** @throws RangeError when the seed is no whole number */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, workers = 3, faults = FAULT_NAMES } = options;
  if (!Number.isSafeInteger(seed)) throw new RangeError(`a seed is a whole number; it is ${seed}`);
  // The frame of a simulation has a randomness of its own, so that it does not move with what happens inside.
  const frame = new Random(seed ^ 0x5eed);
  const world = new World({
    seed,
    workers,
    servers: options.servers ?? frame.pick([1, 3]),
    counter: frame.chance(NEAR_THE_END_SHARE) ? frame.pick(COUNTERS) : 0,
    work: options.work ?? standardWork,
  });
  const faultsMs = options.faultsMs ?? frame.pick(FAULTS_MS);
  scheduleFaults(world, faults, faultsMs);
  const done = await world.scheduler.runUntil(
    () => world.faultsOver && world.allDone,
    faultsMs + LIMIT_MS,
  );
  if (!done) world.violated("not everybody got the job in time after the faults had ended");
  world.monitor.checkEnd();
  await checkNothingIsLeft(world);
  return { seed, violations: world.violations, history: world.history };
}

function scheduleFaults(world: World, names: readonly FaultName[], untilMs: number): void {
  const { scheduler, random } = world;
  scheduler.after(random.whole(...FAULT_EVERY_MS), () => {
    if (scheduler.nowMs() >= untilMs) {
      world.endFaults();
      return;
    }
    const { living } = world;
    if (names.length > 0 && living.length > 0) {
      const name = random.pick(names);
      const worker = random.pick(living);
      const lastsMs = random.whole(...FAULT_LASTS_MS);
      world.note("faults", `${name} ${worker.name} ${lastsMs}`);
      FAULTS[name](world, worker, lastsMs);
    }
    scheduleFaults(world, names, untilMs);
  });
}

/** When all have left: no contender, watch, timer, listener or unanswered request of ours. */
async function checkNothingIsLeft(world: World): Promise<void> {
  const { scheduler, ensemble, living } = world;
  for (const { zookeeper } of living) void zookeeper.close();
  // What was left to the background may take as long as a session.
  await scheduler.runUntil(() => false, scheduler.nowMs() + 3 * GRANTED_TIMEOUT_MS);
  const left = ensemble.childrenOf(claimPath(JOB));
  if (left.length > 0) world.violated(`contenders are left: ${left.join(", ")}`);
  for (const { watches, index } of ensemble.servers) {
    if (watches.length > 0) world.violated(`${watches.length} watches are left at server ${index}`);
  }
  for (const { name, process, zookeeper } of living) {
    const timers = process.main.pendingTimers + process.sessions.pendingTimers;
    if (timers > 0) world.violated(`${name} has ${timers} timers left`);
    for (const { listeners } of zookeeper.sessions) {
      const count = listeners.states + listeners.paths.length;
      if (count > 0) world.violated(`${name} has ${count} listeners left`);
    }
    const unanswered = zookeeper.handles.reduce((sum, { pendingCount }) => sum + pendingCount, 0);
    if (unanswered > 0) world.violated(`${name} has ${unanswered} requests without an answer`);
  }
}
