/**
 * One schedule: workers that run the production recipes for one job, faults drawn from the seed, and the invariants
 * that must hold whatever happens. The same seed gives the same history to the letter.
 */
import { SinkOutcomeUnknownError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Claim } from "../../recipes/claim.js";
import { fencedRun } from "../../recipes/fenced-run.js";
import { Random } from "./random.js";
import { Scheduler } from "./scheduler.js";
import { SimulatedProcess } from "./simulated-process.js";
import { type Compares, SimulatedSink, SimulatedStore } from "./simulated-sink.js";
import { type Distort, SimulatedSource } from "./simulated-source.js";
import { SimulatedZooKeeper } from "./simulated-zookeeper.js";

export interface ScheduleOptions {
  seed: number;
  compares?: Compares;
  distort?: Distort;
}

export interface ScheduleResult {
  seed: number;
  /** Invariants that did not hold, in words. */
  violations: string[];
  history: string[];
}

const JOB = "job";
const KEY = "key";
const WORKERS = ["A", "B", "C"];
const ROUNDS = 3;
const FAULTS = ["cut", "lose reply", "partition", "stop", "delete contender", "delete path"];
const OPERATIONS = ["create", "list", "read", "delete", "sync"];
const SESSION_TIMEOUT_MS = 6_000;
const FAULTS_END_MS = 40_000;
/** After the faults have ended, everybody gets the job within this time. */
const LIMIT_MS = 400_000;

interface Held {
  worker: string;
  claim: Claim;
  process: SimulatedProcess;
}

export class Schedule {
  readonly history: string[] = [];
  readonly violations: string[] = [];
  readonly #random: Random;
  readonly #scheduler: Scheduler;
  readonly #server: SimulatedZooKeeper;
  readonly #store: SimulatedStore;
  readonly #workers: { process: SimulatedProcess; source: SimulatedSource }[];
  /** Claims whose handler is running. */
  readonly #held = new Set<Held>();
  readonly #grantedTokens = new Set<string>();
  /** Paths of contenders that a stranger deleted: the server hands on at once, and nobody can be told before. */
  readonly #takenAway = new Set<string>();
  #finished = 0;

  constructor(readonly options: ScheduleOptions) {
    this.#random = new Random(options.seed);
    this.#scheduler = new Scheduler(this.#random);
    this.#server = new SimulatedZooKeeper(this.#scheduler);
    this.#store = new SimulatedStore(options.compares ?? "as it must");
    const distort = options.distort ?? ((session) => session);
    this.#workers = WORKERS.map((name) => {
      const process = new SimulatedProcess(name, this.#scheduler);
      const source = { timeoutMs: SESSION_TIMEOUT_MS, distort };
      return { process, source: new SimulatedSource(process, this.#server, source) };
    });
  }

  async run(): Promise<ScheduleResult> {
    for (const worker of this.#workers) void this.#work(worker);
    this.#scheduleFault();
    const all = () => this.#finished === this.#workers.length;
    if (!(await this.#scheduler.runUntil(all, LIMIT_MS))) {
      this.#violated("not everybody got the job in time after the faults had ended");
    }
    await this.#checkTheEnd();
    return { seed: this.options.seed, violations: this.violations, history: this.history };
  }

  async #work(worker: { process: SimulatedProcess; source: SimulatedSource }): Promise<void> {
    const { name } = worker.process;
    for (let round = 1; round <= ROUNDS; round += 1) {
      this.#note(name, `round ${round}: ${await this.#round(worker, `${name}${round}`)}`);
    }
    while (this.#scheduler.nowMs() < FAULTS_END_MS + SESSION_TIMEOUT_MS) {
      await new Promise<void>((resolve) => worker.process.after(1_000, resolve));
    }
    // without faults it must simply work
    const last = await this.#round(worker, `${name}-last`);
    this.#note(name, `last round: ${last}`);
    if (last !== "committed") this.#violated(`the last round of ${name} ended with ${last}`);
    this.#finished += 1;
  }

  /** One fenced run; gives its outcome, or the code of an error that a fault explains. */
  async #round(
    { process, source }: { process: SimulatedProcess; source: SimulatedSource },
    value: string,
  ): Promise<string> {
    const sink = new SimulatedSink(process, this.#store, {
      loss: this.#scheduler.nowMs() < FAULTS_END_MS ? 0.1 : 0,
    });
    try {
      const answer = await fencedRun(
        {
          zookeeper: source,
          job: JOB,
          waitMs: 120_000,
          result: { sink, key: KEY },
          holder: process.name,
          uuid: () => this.#random.uuid(),
        },
        async (claim) => {
          const held = { worker: process.name, claim, process };
          this.#granted(held);
          await new Promise<void>((resolve) =>
            process.after(this.#random.whole(50, 10_000), resolve),
          );
          this.#held.delete(held);
          return value;
        },
      );
      return answer.outcome;
    } catch (error) {
      const explained =
        error instanceof SinkOutcomeUnknownError || error instanceof ZooKeeperUnreachableError;
      if (!explained)
        this.#violated(`${process.name} met an error that no fault explains: ${error}`);
      return explained ? error.code : String(error);
    }
  }

  #granted(held: Held): void {
    const { worker, claim } = held;
    const { text, sequence } = claim.token;
    this.#note(worker, `granted ${sequence}`);
    if (this.#grantedTokens.has(text)) this.#violated(`token ${text} was granted twice`);
    this.#grantedTokens.add(text);
    const isReal = this.#server
      .childrenOf(claimPath(JOB))
      .some((name) => claim.path.endsWith(name));
    for (const other of isReal ? this.#held : []) {
      const excused =
        other.claim.signal.aborted ||
        other.process.isStopped ||
        this.#takenAway.has(other.claim.path);
      if (!excused)
        this.#violated(`${worker} was granted the claim while ${other.worker} had not been told`);
    }
    this.#held.add(held);
  }

  #scheduleFault(): void {
    this.#scheduler.after(this.#random.whole(100, 2_500), () => {
      if (this.#scheduler.nowMs() > FAULTS_END_MS) {
        for (const { process, source } of this.#workers) {
          source.current?.heal();
          process.continue();
        }
        this.#note("faults", "end");
        return;
      }
      this.#doFault();
      this.#scheduleFault();
    });
  }

  #doFault(): void {
    const { process, source } = this.#random.pick(this.#workers);
    const session = source.current;
    const lastsMs = this.#random.whole(100, 25_000);
    const fault = this.#random.pick(FAULTS);
    this.#note("faults", `${fault} ${process.name} ${lastsMs}`);
    if (fault === "cut") session?.cut();
    else if (fault === "lose reply") session?.loseReplyOf(this.#random.pick(OPERATIONS));
    else if (fault === "partition") {
      session?.partition();
      this.#scheduler.after(lastsMs, () => session?.heal());
    } else if (fault === "stop") {
      process.stop();
      this.#scheduler.after(lastsMs, () => process.continue());
    } else if (fault === "delete contender") this.#deleteContender();
    else if (this.#server.childrenOf(claimPath(JOB)).length === 0) this.#deletePath();
  }

  #deleteContender(): void {
    const names = this.#server.childrenOf(claimPath(JOB));
    if (names.length === 0) return;
    const path = `${claimPath(JOB)}/${this.#random.pick(names)}`;
    this.#takenAway.add(path);
    this.#server.delete(path);
  }

  #deletePath(): void {
    const siblings = this.#server.childrenOf("/fencekeeper/claims");
    if (siblings.length > 0) this.#server.delete(claimPath(JOB));
  }

  async #checkTheEnd(): Promise<void> {
    const { accepted } = this.#store;
    accepted.forEach((write, index) => {
      const before = accepted[index - 1];
      if (before !== undefined && write.token < before.token) {
        this.#violated(
          `the write ${write.value} under ${write.token} lies on top of ${before.token}`,
        );
      }
    });
    // what was left to the background may take as long as a session
    const endsAtMs = this.#scheduler.nowMs() + 2 * SESSION_TIMEOUT_MS;
    await this.#scheduler.runUntil(() => false, endsAtMs);
    const left = this.#server.childrenOf(claimPath(JOB));
    if (left.length > 0) this.#violated(`contenders are left: ${left.join(", ")}`);
    for (const { source } of this.#workers) {
      for (const session of source.sessions) {
        if (session.listeners > 0) this.#violated(`${session.listeners} listeners are left`);
        session.close();
      }
    }
  }

  #note(who: string, what: string): void {
    this.history.push(`${this.#scheduler.nowMs().toFixed(3)} ${who} ${what}`);
  }

  #violated(what: string): void {
    this.violations.push(what);
    this.#note("VIOLATED", what);
  }
}

export function runSchedule(options: ScheduleOptions): Promise<ScheduleResult> {
  return new Schedule(options).run();
}
