/**
 * `status --stale`: the result keys with refused writes, and how long ago the last one was.
 */
import { readStaleWrites, type StaleWrites } from "../../lib/redis/stale-writes.js";
import { storedJob } from "../../lib/redis/stored-form.js";
import { sequenceOf } from "./commands/get.js";
import { type CommonFlags, connectTimeoutMsOf } from "./common-options.js";
import { formatDuration } from "./duration.js";
import { redisOf } from "./redis-options.js";
import type { Report } from "./report.js";

export interface StaleReport {
  /** Only this job's keys; undefined for all. */
  job: string | undefined;
  flags: CommonFlags;
  report: Report;
}

/** @throws OptionError when there is no address of Redis, and the errors of a read */
export async function reportStaleWrites({ job, flags, report }: StaleReport): Promise<void> {
  const all = await readStaleWrites({ ...redisOf(flags), timeoutMs: connectTimeoutMsOf(flags) });
  const wanted = all.filter((each) => job === undefined || each.job === storedJob(job));
  await report.result(report.json ? `${JSON.stringify(wanted)}\n` : describe(wanted));
}

function describe(all: StaleWrites[]): string {
  if (all.length === 0) return "no write was refused\n";
  return all.map((each) => `${describeOne(each)}\n`).join("");
}

function describeOne({
  key,
  job,
  tokenText,
  staleCount,
  observedCount,
  last,
}: StaleWrites): string {
  const counts = [
    ...(staleCount > 0 ? [`${staleCount} refused`] : []),
    ...(observedCount > 0 ? [`${observedCount} observed`] : []),
  ].join(", ");
  const fence = `fence ${sequenceOf(tokenText)}`;
  const latest =
    last === undefined
      ? ""
      : `, last token ${sequenceOf(last.tokenText)} ${formatDuration(last.ageMs)} ago`;
  return `${counts.padStart(12)}  ${JSON.stringify(key)}  job ${JSON.stringify(job)}  ${fence}${latest}`;
}
