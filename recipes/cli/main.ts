#!/usr/bin/env node
/**
 * The command line `fencekeeper`: puts the commands together and turns every ending into its exit code.
 */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { FencekeeperError } from "../../lib/errors.js";
import { addCommit } from "./commands/commit.js";
import { addCompact } from "./commands/compact.js";
import { addDemo } from "./commands/demo.js";
import { addDoctor } from "./commands/doctor.js";
import { addGet } from "./commands/get.js";
import { addRun } from "./commands/run.js";
import { addStatus } from "./commands/status.js";
import { EXIT, Exit, exitStatusOf } from "./exit.js";
import { Report } from "./report.js";

/** A process that has its exit code but does not end is told of, and ended, after this long. */
const LINGER_MS = 5_000;

const EXIT_CODES = `
Exit codes of run: the command's own (128+n after signal n, 126 and 127 as in a shell), or
  64 wrong usage                        74 the result could not be written
  65 data refused                       75 somebody else holds the claim
  69 ZooKeeper or Redis not reachable   76 the claim was lost; the command was stopped
  70 a bug of fencekeeper               77 not allowed
  73 stale: the fence refused it        78 configuration that cannot work`;

function makeProgram(): Command {
  const program = new Command("fencekeeper")
    .description(
      "Runs work under a claim in ZooKeeper and commits its result to Redis behind a fence, " +
        "so that a worker that lost its claim can never overwrite a newer worker's result.",
    )
    .version(version())
    .addHelpText("after", EXIT_CODES);
  addDemo(program);
  addRun(program);
  addCommit(program);
  addGet(program);
  addStatus(program);
  addDoctor(program);
  addCompact(program);
  for (const command of [program, ...program.commands]) {
    command.exitOverride().showHelpAfterError("(--help shows what there is)");
  }
  return program;
}

function version(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

async function main(): Promise<void> {
  try {
    await makeProgram().parseAsync();
  } catch (error) {
    process.exitCode = endWith(error);
  }
  const linger = setTimeout(() => {
    new Report({ json: false, quiet: false }).warn(
      "something kept the process from ending; it is ended now",
    );
    process.exit();
  }, LINGER_MS);
  linger.unref();
}

/** Says why it ended, and gives the exit code. */
function endWith(error: unknown): number {
  if (error instanceof CommanderError) {
    // commander has printed its message; help and version are asked for, the rest is wrong usage
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
  const words = process.argv.slice(2);
  const ours = words.includes("--") ? words.slice(0, words.indexOf("--")) : words;
  const report = new Report({ json: ours.includes("--json"), quiet: false });
  const status = exitStatusOf(error);
  if (error instanceof Exit) report.fail(error.message, { code: error.code, status });
  else if (error instanceof FencekeeperError) {
    report.fail(error.message, { code: error.code, definite: error.definite, status });
  } else {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    report.fail(`this is a bug, please report it: ${detail}`, { code: "BUG", status });
  }
  return status;
}

// Whoever writes a result is told by its own callback; without a listener the process would die of it first.
process.stdout.on("error", () => {}); // see above

await main();
