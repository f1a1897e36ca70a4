/**
 * `run JOB -- CMD…`: any command under a claim, its output as a result behind the fence.
 */
import type { Command } from "commander";
import { type ClaimLostError, OptionError } from "../../../lib/errors.js";
import { fenceKeyOf } from "../../../lib/redis/fence-key.js";
import type { Sink } from "../../../lib/sink.js";
import { exitStatusNumber } from "../../command/exit-status.js";
import { forwardSignals } from "../../command/forward-signals.js";
import type { RunningCommand } from "../../command/running-command.js";
import { type CommandRunAnswer, type CommandRunEvent, runCommand } from "../../command-runner.js";
import type { ResultTarget } from "../../fenced-run.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  eraOf,
  reportOf,
  sinkOf,
  zookeeperOf,
} from "../common-options.js";
import { formatDuration, parseBytes, parseDurationMs } from "../duration.js";
import { EXIT, Exit } from "../exit.js";
import { Interrupted } from "../interrupted.js";
import { refusalOf } from "../refusal.js";
import type { Report } from "../report.js";

interface RunFlags extends CommonFlags {
  wait?: string;
  key?: string;
  ttl?: string;
  once?: true;
  maxAge?: string;
  maxBytes: string;
  killGrace?: string;
}

export function addRun(program: Command): void {
  const command = program
    .command("run")
    .summary("run a command under a claim")
    .usage("[options] <job> -- <command> [args...]")
    .description(
      "Claims JOB, runs the command, and releases the claim when the command and all its children are gone. " +
        "With --key, its standard output becomes the result, committed behind the fence if it ends with 0. " +
        "The command finds FENCEKEEPER_JOB, FENCEKEEPER_TOKEN and FENCEKEEPER_SEQUENCE in its environment.",
    )
    .argument("<job>", "the job's id: any text of up to 512 bytes")
    .argument("[command...]", "the command, after --")
    .option(
      "--wait <duration>",
      "how long to wait while somebody else holds the claim (default: not at all)",
    )
    .option("--key <key>", "commit the command's standard output as the result at this Redis key")
    .option("--ttl <duration>", "how long the result is kept (default: for ever)")
    .option("--once", "take a committed result that is there already, and do not run the command")
    .option("--max-age <duration>", "the same for a result younger than this")
    .option("--max-bytes <size>", "larger results are refused", "16MiB")
    .option("--kill-grace <duration>", "time between TERM and KILL when the claim is lost");
  addCommonOptions(command).action(run);
}

async function run(job: string, words: string[], flags: RunFlags): Promise<void> {
  const report = reportOf(flags);
  const [command, ...args] = words;
  if (command === undefined) {
    throw new OptionError("which command? fencekeeper run JOB -- COMMAND ARGUMENTS…");
  }
  checkKeyFlags(flags);
  const wait = parseWait(flags);
  const zookeeper = zookeeperOf(flags, report);
  let sink: Sink | undefined;
  let running: RunningCommand | undefined;
  const giveUp = new AbortController();
  // Before the grant a signal ends us at once; once the command runs, the signal is the command's.
  const stopForwarding = forwardSignals((signal) => {
    if (running === undefined) giveUp.abort(new Interrupted(signal));
    else running.signal(signal);
  });
  try {
    sink = flags.key === undefined ? undefined : sinkOf(flags);
    const result = sink && resultTarget(sink, flags);
    const { answer, status } = await runCommand({
      zookeeper,
      job,
      command,
      args,
      env: commandEnvironment(flags),
      ...wait,
      answerMs: connectTimeoutMsOf(flags),
      era: eraOf(flags),
      ...(flags.root === undefined ? {} : { root: flags.root }),
      ...(result === undefined ? {} : { result }),
      resultBytesMax: parseBytes(flags.maxBytes, "--max-bytes"),
      signal: giveUp.signal,
      warn: report.warn,
      onEvent: (event) => {
        if (event.kind === "started") running = event.command;
        tell(report, event);
      },
    });
    await finish({ answer, status }, { flags, job, report, sink });
  } finally {
    await Promise.all([zookeeper.close(), sink?.close(), running?.passedThrough()]);
    stopForwarding();
  }
}

/** Before anything is opened: a key that cannot be used, and flags that mean nothing without one. */
function checkKeyFlags(flags: RunFlags): void {
  if (flags.key !== undefined) {
    fenceKeyOf(flags.key);
    return;
  }
  for (const name of ["ttl", "once", "maxAge"] as const) {
    if (flags[name] === undefined) continue;
    const flag = name === "maxAge" ? "--max-age" : `--${name}`;
    throw new OptionError(`${flag} is about a result: give --key too`);
  }
}

function parseWait({ wait, killGrace }: RunFlags): { waitMs: number; stopGraceMs?: number } {
  const waitMs = wait === undefined ? 0 : parseDurationMs(wait, "--wait");
  if (killGrace === undefined) return { waitMs };
  return { waitMs, stopGraceMs: parseDurationMs(killGrace, "--kill-grace") };
}

function resultTarget(sink: Sink, { key = "", ttl, once, maxAge }: RunFlags): ResultTarget {
  const accept =
    maxAge !== undefined
      ? { maxAgeMs: parseDurationMs(maxAge, "--max-age") }
      : once
        ? ("any" as const)
        : undefined;
  return {
    sink,
    key,
    ...(ttl === undefined ? {} : { ttlMs: parseDurationMs(ttl, "--ttl") }),
    ...(accept === undefined ? {} : { accept }),
  };
}

/** Our own environment, with the addresses, so that `fencekeeper commit` works in the command without flags. */
function commandEnvironment({ zookeeper, redis }: RunFlags): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...(zookeeper === undefined ? {} : { ZOOKEEPER_CONNECT: zookeeper }),
    ...(redis === undefined ? {} : { REDIS_URL: redis }),
  };
}

function tell(report: Report, event: CommandRunEvent): void {
  switch (event.kind) {
    case "granted": {
      const { sequence, text } = event.claim.token;
      report.note(`claim granted, token ${sequence}`, { event: "granted", token: text });
      break;
    }
    case "stopping":
      report.fail(
        `${event.error.message}; stopping the command (KILL after ${formatDuration(event.graceMs)})`,
        { event: "stopping", reason: event.error.reason },
      );
      break;
    case "leftovers":
      report.note(`the command left ${event.count} processes behind; they were ended`, {
        event: "leftovers",
        count: event.count,
      });
      break;
    case "started":
      break;
  }
}

interface Ending {
  flags: RunFlags;
  job: string;
  report: Report;
  sink: Sink | undefined;
}

function describeLoss(error: ClaimLostError, ran: boolean, { key }: RunFlags): string {
  const committed = key === undefined ? "" : "; nothing was committed";
  // while the command ran, the reason was told when it was stopped
  return ran ? `the command was stopped, its claim was lost${committed}` : error.message;
}

/** Says how it ended, and throws the exit that stands for it. */
async function finish({ answer, status }: CommandRunAnswer, ending: Ending): Promise<void> {
  const { flags, job, report, sink } = ending;
  const key = flags.key ?? "";
  switch (answer.outcome) {
    case "busy":
      throw new Exit(
        EXIT.busy,
        `job ${JSON.stringify(job)} is held by somebody else (${answer.ahead} ahead of us)`,
        "BUSY",
      );
    case "lost":
      throw new Exit(EXIT.lost, describeLoss(answer.error, status !== undefined, flags), "LOST");
    case "present": {
      const age = formatDuration(answer.present.ageMs);
      report.note(`a result is there already, ${age} old; the command did not run`, {
        outcome: "present",
        token: answer.present.tokenText,
      });
      const { value } = (await sink?.readResult(key)) ?? {};
      if (value !== undefined) await report.result(value);
      return;
    }
    case "done": {
      const number = status === undefined ? 0 : exitStatusNumber(status);
      if (flags.key !== undefined) {
        report.note(`the command ended with ${number}; nothing was committed`, { status: number });
      }
      process.exitCode = number;
      return;
    }
    default: {
      const refusal = refusalOf(answer, key);
      if (refusal !== undefined) throw refusal;
      report.note(`${answer.outcome} at ${JSON.stringify(key)}, token ${answer.token.sequence}`, {
        outcome: answer.outcome,
        token: answer.token.text,
      });
    }
  }
}
