/**
 * The outcomes by which the sink refuses a write, as the command line tells them.
 */
import type { CommitAnswer } from "../../lib/sink.js";
import { EXIT, Exit } from "./exit.js";

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
