#!/usr/bin/env node
/**
 * `npm run simulate`: plays seeds, and one of them again with its trace. Results go to standard output, progress to
 * standard error; exits with 0 when every invariant held, 1 when one did not, 64 for wrong usage.
 */
import { Command, InvalidArgumentError } from "commander";
import { FAULT_NAMES, type FaultName } from "./faults.js";
import { runSeeds } from "./seeds.js";
import type { SeedResult } from "./seeds-thread.js";
import { simulate } from "./simulate.js";

interface Options {
  seeds: number;
  seed: number;
  threads?: number;
  faults?: FaultName[];
  trace?: true;
  untilViolation?: true;
  json?: true;
}

/** Progress is told this often, in milliseconds. */
const PROGRESS_MS = 500;
const PROGRESS_PLAIN_MS = 10_000;

/** So many violating seeds are told in words. */
const TOLD = 5;

const EXIT_VIOLATED = 1;
const EXIT_USAGE = 64;

/** The command that plays one seed again. */
function replayOf(seed: number, faults?: FaultName[]): string {
  const only = faults === undefined ? "" : ` --faults ${faults.join(",")}`;
  return `npm run simulate -- --seeds 1 --seed ${seed}${only} --trace`;
}

function wholeNumber(min: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < min) {
      throw new InvalidArgumentError(`a whole number from ${min} is wanted.`);
    }
    return value;
  };
}

function faultNames(text: string): FaultName[] {
  return text.split(",").map((name) => {
    const known = FAULT_NAMES.find((each) => each === name);
    if (known === undefined) {
      throw new InvalidArgumentError(
        `there is no fault ${name}; there are ${FAULT_NAMES.join(", ")}.`,
      );
    }
    return known;
  });
}

async function main(options: Options): Promise<void> {
  if (options.trace) await trace(options);
  else await many(options);
}

async function trace({ seed, seeds, faults }: Options): Promise<void> {
  for (let each = seed; each < seed + seeds; each += 1) {
    const { violations, history } = await simulate({ seed: each, ...(faults && { faults }) });
    console.log(`seed ${each}`);
    for (const line of history) console.log(aligned(line));
    console.log(violations.length === 0 ? "every invariant held" : wordsOf(violations));
    if (violations.length > 0) process.exitCode = EXIT_VIOLATED;
  }
}

async function many({
  seed,
  seeds,
  threads,
  faults,
  untilViolation,
  json,
}: Options): Promise<void> {
  const startMs = performance.now();
  const seconds = () => (performance.now() - startMs) / 1_000;
  const progress = progressTo(process.stderr, seeds, seconds);
  const { done, violating } = await runSeeds({
    ...{ first: seed, count: seeds, onProgress: progress.tell, signal: interrupted() },
    onViolating: ({ seed: found }) => progress.line(`seed ${found} violated something`),
    ...(threads === undefined ? {} : { threads }),
    ...(faults && { faults }),
    untilViolation: untilViolation ?? false,
  });
  progress.end();
  if (json) {
    console.log(JSON.stringify({ first: seed, done, seconds: seconds(), violating }));
  } else {
    const rate = Math.round(done / seconds());
    console.log(
      `${done} schedules from seed ${seed}: ${violating.length} with violations ` +
        `(${seconds().toFixed(1)} s, ${rate} a second)`,
    );
    tellViolating(violating, faults);
  }
  if (violating.length > 0) process.exitCode = EXIT_VIOLATED;
}

/** Ctrl-C ends the run early, and does not hide what it has found. */
function interrupted(): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  return stop.signal;
}

function tellViolating(violating: SeedResult[], faults?: FaultName[]): void {
  for (const { seed, violations } of violating.slice(0, TOLD)) {
    console.log(`\nseed ${seed}: ${wordsOf(violations)}`);
    console.log(`  play it again: ${replayOf(seed, faults)}`);
  }
  if (violating.length > TOLD) console.log(`\nand ${violating.length - TOLD} more`);
}

/** On a terminal one line that is written over, elsewhere a line now and then. */
function progressTo(stream: NodeJS.WriteStream, count: number, seconds: () => number) {
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    tell(done: number, violating: number): void {
      const nowMs = performance.now();
      if (nowMs - toldAt < (stream.isTTY ? PROGRESS_MS : PROGRESS_PLAIN_MS)) return;
      toldAt = nowMs;
      const left = Math.round((seconds() / done) * (count - done));
      const line = `${done} of ${count} schedules, ${violating} with violations, ${left} s left`;
      stream.write(stream.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
    },
    line(text: string): void {
      stream.write(stream.isTTY ? `\r\x1b[K${text}\n` : `${text}\n`);
    },
    end(): void {
      if (stream.isTTY) stream.write("\r\x1b[K");
    },
  };
}

/** A line of a history with its time, who and what below those of the others. */
function aligned(line: string): string {
  const [atMs = "", who = "", ...what] = line.split(" ");
  return `${(Number(atMs) / 1_000).toFixed(3).padStart(9)} s  ${who.padEnd(8)}  ${what.join(" ")}`;
}

function wordsOf(violations: string[]): string {
  return violations.map((what) => `VIOLATED: ${what}`).join("\n  ");
}

const program = new Command("simulate")
  .description("Plays faulty schedules of the claim recipe under virtual time, one for each seed.")
  .option("--seeds <n>", "how many", wholeNumber(1), 1_000)
  .option("--seed <n>", "the first one", wholeNumber(0), 1)
  .option("--threads <n>", "how many at once; default: one for each processor", wholeNumber(1))
  .option("--faults <names>", "only these faults, with commas between", faultNames)
  .option("--trace", "print what happens in each")
  .option("--until-violation", "stop at the first that violates something")
  .option("--json", "one line for programs")
  .allowExcessArguments(false)
  .exitOverride();

try {
  program.parse();
  await main(program.opts<Options>());
} catch (error) {
  const { exitCode } = error as { exitCode?: number };
  if (exitCode === undefined) throw error;
  process.exitCode = exitCode === 0 ? 0 : EXIT_USAGE; // commander has said what is wrong
}
