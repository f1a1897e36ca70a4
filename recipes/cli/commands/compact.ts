/**
 * `compact`: removes the fences of finished jobs. Without --apply it only says what it would remove.
 */
import type { Command } from "commander";
import { openRedisFences } from "../../../lib/redis/fence-store.js";
import { type CompactReport, compact, type KeptWhy } from "../../compact.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  eraOf,
  reportOf,
  zookeeperOf,
} from "../common-options.js";
import { Interrupted } from "../interrupted.js";
import { Progress } from "../progress.js";
import { redisOf } from "../redis-options.js";

interface CompactFlags extends CommonFlags {
  apply?: true;
  withResults?: true;
}

const WHY: Record<KeptWhy, string> = {
  live: "their jobs are claimed now",
  result: "their results are there (see --with-results)",
  changed: "a claim has raised them meanwhile",
  floor:
    "their tokens are above ZooKeeper's last transaction (see doctor), or another compact is at work",
  unreadable: "they are no fences of ours (see doctor)",
};

export function addCompact(program: Command): void {
  const command = program
    .command("compact")
    .summary("remove the fences of finished jobs")
    .description(
      "Removes the fences of jobs that nobody claims now and whose result is gone, and keeps old tokens out all the " +
        "same. Only counts them, unless --apply is given. It can be stopped at any time, and run again; workers go " +
        "on meanwhile. Give it the --root and --era of the workers.",
    )
    .option("--apply", "remove them; without it nothing is changed")
    .option("--with-results", "also fences whose result is there: its token and age are forgotten");
  addCommonOptions(command).action(run);
}

async function run(flags: CompactFlags): Promise<void> {
  const report = reportOf(flags);
  const era = eraOf(flags);
  const fences = openRedisFences({
    ...redisOf(flags),
    timeoutMs: connectTimeoutMsOf(flags),
  });
  const zookeeper = zookeeperOf(flags, report);
  const progress = new Progress(report);
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(name, () => stop.abort(new Interrupted(name)));
  }
  let last: CompactReport | undefined;
  const tell = (done: CompactReport, complete: boolean) => {
    const whole = { ...done, applied: flags.apply === true, complete };
    return report.result(report.json ? `${JSON.stringify(whole)}\n` : describe(done, flags));
  };
  try {
    last = await compact({
      ...{ zookeeper, fences, era, root: flags.root, signal: stop.signal },
      dryRun: flags.apply !== true,
      withResults: flags.withResults === true,
      onProgress: (done) => {
        last = done;
        progress.tell(summaryOf(done, flags), { ...done });
      },
    });
    progress.end();
    await tell(last, true);
  } catch (error) {
    progress.end();
    // what has been done stays done
    if (last !== undefined && (stop.signal.aborted || last.dropped > 0)) await tell(last, false);
    throw error;
  } finally {
    await Promise.all([fences.close(), zookeeper.close()]);
  }
}

function summaryOf({ met, dropped }: CompactReport, { apply }: CompactFlags): string {
  return `${met} fences met, ${dropped} ${apply ? "removed" : "would be removed"}`;
}

function describe(report: CompactReport, flags: CompactFlags): string {
  const lines = [
    [report.met, "fences met"],
    [report.dropped, flags.apply ? "removed" : "would be removed: give --apply to do it"],
    ...Object.entries(report.kept)
      .filter(([, count]) => count > 0)
      .map(([why, count]) => [count, `stay: ${WHY[why as KeptWhy]}`]), // its keys are those
  ] as const;
  const width = Math.max(...lines.map(([count]) => String(count).length));
  return lines.map(([count, what]) => `${String(count).padStart(width)}  ${what}\n`).join("");
}
