/**
 * The outcomes by which the sink refuses a write, as the command line tells them.
 */
import type { CommitAnswer } from "../../lib/sink.js";
import { EXIT, Exit } from "./exit.js";
import type { Report } from "./report.js";

/** The exit that a refused write ends in, or undefined when it was accepted. */
export function refusalOf(answer: CommitAnswer, key: string): Exit | undefined {
  const at = JSON.stringify(key);
  switch (answer.outcome) {
    case "committed":
    case "duplicate":
    case "observed":
      return undefined;
    case "superseded":
      return new Exit(
        EXIT.dataRefused,
        `a later result was committed at ${at} under this token; nothing was written`,
        "SUPERSEDED",
      );
    case "stale":
      return new Exit(
        EXIT.stale,
        `stale: the fence of ${at} is at ${answer.fenceText}, above this claim's token; nothing was overwritten. ` +
          "If ZooKeeper was rebuilt or restored from a backup, raise --era",
        "STALE",
      );
    case "foreign":
      return new Exit(
        EXIT.dataRefused,
        `the key ${at} belongs to job ${JSON.stringify(answer.owner)}; nothing was written. ` +
          "Use another key, or run that job",
        "FOREIGN",
      );
    case "conflict":
      return new Exit(
        EXIT.dataRefused,
        `another result was committed at ${at} under this token before; nothing was written`,
        "CONFLICT",
      );
  }
}

/** Under `--observe` a write that the fence would refuse is made, and said to be one. */
export function warnOfObserved(report: Report, answer: CommitAnswer, key: string): void {
  if (answer.outcome !== "observed") return;
  report.warn(
    `the write at ${JSON.stringify(key)} is ${answer.refusal.outcome}, and was made because of --observe`,
  );
}
