/**
 * `run JOB -- CMD…`: any command under a claim, its output as a result behind the fence.
 */
import type { Command } from "commander";
import { OptionError } from "../../../lib/errors.js";
import { fenceKeyOf } from "../../../lib/redis/fence-key.js";
import type { Sink } from "../../../lib/sink.js";
import { forwardSignals } from "../../command/forward-signals.js";
import type { RunningCommand } from "../../command/running-command.js";
import { runCommand } from "../../command-runner.js";
import type { ResultTarget } from "../../fenced-run.js";
import type { MetricsServer } from "../../metrics/metrics-server.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  eraOf,
  ROOT_VARIABLE,
  reportOf,
  sinkOf,
  zookeeperOf,
} from "../common-options.js";
import { parseBytes, parseDurationMs } from "../duration.js";
import { Interrupted } from "../interrupted.js";
import { addMetricsOptions, type MetricsFlags, serveMetrics } from "../metrics-flags.js";
import { addObserveOption, redisEnvironment } from "../redis-options.js";
import { finish, tell, tellPosition, warnOfLostOutput } from "../run-ending.js";
import { zookeeperEnvironment } from "../zookeeper-options.js";

interface RunFlags extends CommonFlags, MetricsFlags {
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
  addMetricsOptions(addObserveOption(addCommonOptions(command))).action(run);
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
  let metrics: MetricsServer | undefined;
  let running: RunningCommand | undefined;
  const giveUp = new AbortController();
  // Before the grant a signal ends us at once; once the command runs, the signal is the command's.
  const stopForwarding = forwardSignals((signal) => {
    if (running === undefined) giveUp.abort(new Interrupted(signal));
    else running.signal(signal);
  });
  try {
    metrics = await serveMetrics(flags, report);
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
      onPosition: (position) => tellPosition(report, position),
      onEvent: (event) => {
        if (event.kind === "started") running = event.command;
        tell(report, event);
      },
    });
    await finish({ answer, status }, { key: flags.key, job, report, sink });
  } finally {
    const passed = running?.passedThrough();
    await Promise.all([zookeeper.close(), sink?.close(), passed, metrics?.close()]);
    warnOfLostOutput(report, running?.passThroughFailure);
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
function commandEnvironment(flags: RunFlags): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...(flags.zookeeper === undefined ? {} : { ZOOKEEPER_CONNECT: flags.zookeeper }),
    ...(flags.root === undefined ? {} : { [ROOT_VARIABLE]: flags.root }),
    ...zookeeperEnvironment(flags),
    ...redisEnvironment(flags),
  };
}
