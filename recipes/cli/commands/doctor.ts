/**
 * `doctor`: finds what would break the promise, and says how to put it right. It only reads.
 */
import type { Command } from "commander";
import { OptionError } from "../../../lib/errors.js";
import { type DiagnoseOptions, diagnose } from "../../doctor/diagnose.js";
import { type Level, worstOf } from "../../doctor/finding.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  eraOf,
  reportOf,
} from "../common-options.js";
import { describeFindings, summaryOf } from "../diagnosis.js";
import { parseDurationMs } from "../duration.js";
import { EXIT } from "../exit.js";
import { redisOf } from "../redis-options.js";
import { securityOf } from "../zookeeper-options.js";

interface DoctorFlags extends CommonFlags {
  key?: string;
  scan: string;
}

const STATUS: Record<Level, number> = {
  well: EXIT.done,
  note: EXIT.done,
  warning: EXIT.no,
  broken: EXIT.broken,
};

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor")
    .summary("find what would break the promise")
    .description(
      "Looks at Redis and ZooKeeper for what would break the promise: settings, persistence, replicas, rights, " +
        "fences, queues. Reads only, and says what it was not allowed to see. " +
        "Exits with 0 when all is well, 1 with warnings, 2 when the promise is broken.",
    )
    .option("--key <key>", "a result key to look at the rights for (default: one that has a fence)")
    .option("--scan <number>", "how many keys and claim paths to go through at most", "10000");
  addCommonOptions(command).action(doctor);
}

async function doctor(flags: DoctorFlags): Promise<void> {
  const report = reportOf(flags);
  const findings = await diagnose(optionsOf(flags));
  const status = STATUS[worstOf(findings)];
  if (report.json) {
    const summary = { level: worstOf(findings), status, summary: summaryOf(findings) };
    await report.result(`${JSON.stringify({ ...summary, findings })}\n`);
  } else {
    const coloured = process.stdout.isTTY === true && !("NO_COLOR" in process.env);
    await report.result(describeFindings(findings, coloured));
  }
  process.exitCode = status;
}

/** Either half may be left out, and is then said to be. */
function optionsOf(flags: DoctorFlags): DiagnoseOptions {
  if (!flags.zookeeper && !flags.redis) {
    throw new OptionError(
      "which servers? Give --zookeeper host:port or ZOOKEEPER_CONNECT, and --redis redis://host:port or REDIS_URL",
    );
  }
  const timeoutMs = connectTimeoutMsOf(flags);
  return {
    zookeeper: flags.zookeeper
      ? {
          connect: flags.zookeeper,
          sessionTimeoutMs: parseDurationMs(flags.sessionTimeout, "--session-timeout"),
          connectTimeoutMs: timeoutMs,
          ...securityOf(flags),
        }
      : undefined,
    redis: flags.redis ? { ...redisOf(flags), timeoutMs } : undefined,
    root: flags.root,
    era: eraOf(flags),
    key: flags.key,
    scanKeys: scanOf(flags),
  };
}

function scanOf({ scan }: DoctorFlags): number {
  if (/^[1-9]\d{0,11}$/.test(scan)) return Number(scan);
  throw new OptionError(`--scan takes a whole number of 1 or more; it is ${JSON.stringify(scan)}`);
}
