/**
 * `status [JOB]`: who holds, who waits, since when; the fence and how many writes it refused.
 */
import type { Command } from "commander";
import { systemClock } from "../../../lib/clock.js";
import { Deadline } from "../../../lib/deadline.js";
import { OptionError } from "../../../lib/errors.js";
import type { FenceRecord } from "../../../lib/sink.js";
import type { ContenderStatus } from "../../contenders.js";
import { type JobStatus, readStatus } from "../../status.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  reportOf,
  sinkOf,
  zookeeperOf,
} from "../common-options.js";
import { formatDuration } from "../duration.js";
import { reportStaleWrites } from "../stale-report.js";
import { sequenceOf } from "./get.js";

interface StatusFlags extends CommonFlags {
  key?: string;
  stale?: true;
}

type Fenced = JobStatus & { key: string; fence: FenceRecord | undefined };

export function addStatus(program: Command): void {
  const command = program
    .command("status")
    .summary("who holds and who waits")
    .description(
      "Shows who holds the claim of JOB, or of every job, who waits, and since when. Where a Redis is given, also " +
        "the fence of the result key and how many stale writes it refused.",
    )
    .argument("[job]", "one job (default: all that are claimed now)")
    .option("--key <key>", "the job's result key (default: the job's id)")
    .option(
      "--stale",
      "instead, the result keys with refused writes; needs Redis only, and looks at every key of it",
    );
  addCommonOptions(command).action(status);
}

async function status(job: string | undefined, flags: StatusFlags): Promise<void> {
  if (flags.key !== undefined && (job === undefined || flags.stale)) {
    throw new OptionError("--key goes with one JOB, and not with --stale");
  }
  const report = reportOf(flags);
  if (flags.stale) return reportStaleWrites({ job, flags, report });
  const zookeeper = zookeeperOf(flags, report);
  try {
    const session = await zookeeper.session(Deadline.after(connectTimeoutMsOf(flags), systemClock));
    const root = flags.root === undefined ? {} : { root: flags.root };
    const jobs = await withFences(await readStatus(session, { ...root, job }), flags);
    await report.result(report.json ? `${JSON.stringify(jobs)}\n` : describeJobs(jobs));
  } finally {
    await zookeeper.close();
  }
}

async function withFences(jobs: JobStatus[], flags: StatusFlags): Promise<Fenced[]> {
  const keyed = jobs.map((job) => ({ ...job, key: flags.key ?? job.job }));
  if (flags.redis === undefined) return keyed.map((job) => ({ ...job, fence: undefined }));
  const sink = sinkOf(flags);
  try {
    return await Promise.all(
      keyed.map(async (job) => ({ ...job, fence: (await sink.readResult(job.key)).fence })),
    );
  } finally {
    await sink.close();
  }
}

function describeJobs(jobs: Fenced[]): string {
  if (jobs.length === 0) return "no job is claimed\n";
  return jobs.map((job) => `${describeJob(job).join("\n")}\n`).join("");
}

function describeJob({ job, contenders, foreign, fence, key }: Fenced): string[] {
  const lines = [`${JSON.stringify(job)}${contenders.length === 0 ? "  free" : ""}`];
  contenders.forEach((contender, index) => {
    lines.push(`  ${index === 0 ? "holds" : "waits"}  ${describeContender(contender)}`);
  });
  if (fence !== undefined) {
    const stale = fence.staleCount === 1 ? "1 stale write" : `${fence.staleCount} stale writes`;
    const where = `${sequenceOf(fence.tokenText)} (${fence.tokenText}) ${fence.state} at ${JSON.stringify(key)}`;
    lines.push(`  fence  ${where}, ${stale} refused`);
  }
  for (const name of foreign) lines.push(`  other  ${name} is no contender`);
  return lines;
}

function describeContender(contender: ContenderStatus): string {
  const token = String(contender.sequence).padStart(10);
  const since = formatDuration(Math.max(0, Date.now() - contender.sinceMs));
  const who = contender.holder ?? contender.name;
  const blocked = contender.session === undefined ? "  PERSISTENT: blocks the queue" : "";
  return `${token}  ${who}  since ${since}${blocked}`;
}
