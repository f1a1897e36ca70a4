/**
 * What `run` says while its command runs and when it has ended, and the exit that stands for each ending.
 */
import type { ClaimLostError } from "../../lib/errors.js";
import type { Sink } from "../../lib/sink.js";
import type { QueuePosition } from "../claim.js";
import { exitStatusNumber } from "../command/exit-status.js";
import type { CommandRunAnswer, CommandRunEvent } from "../command-runner.js";
import { formatDuration } from "./duration.js";
import { EXIT, Exit } from "./exit.js";
import { refusalOf, warnOfObserved } from "./refusal.js";
import type { Report } from "./report.js";

/** Tells people what goes on while the command runs. */
export function tell(report: Report, event: CommandRunEvent): void {
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

/** Tells who waits in the queue where it stands. */
export function tellPosition(report: Report, { ahead, holder }: QueuePosition): void {
  report.note(`waiting for the claim, ${ahead} ahead of us`, { event: "waiting", ahead, holder });
}

interface Ending {
  job: string;
  /** The result's key, where there is one. */
  key: string | undefined;
  report: Report;
  sink: Sink | undefined;
}

/** What was captured is complete all the same; a reader that has gone wants no more of it. */
export function warnOfLostOutput(report: Report, failure: NodeJS.ErrnoException | undefined): void {
  if (failure === undefined || failure.code === "EPIPE") return;
  report.warn(`the command's output could not be passed on to standard output: ${failure.message}`);
}

function describeLoss(error: ClaimLostError, ran: boolean, key: string | undefined): string {
  const committed = key === undefined ? "" : "; nothing was committed";
  // while the command ran, the reason was told when it was stopped
  return ran ? `the command was stopped, its claim was lost${committed}` : error.message;
}

/** Says how it ended, and throws the exit that stands for it. */
export async function finish({ answer, status }: CommandRunAnswer, ending: Ending): Promise<void> {
  const { key, job, report, sink } = ending;
  switch (answer.outcome) {
    case "busy":
      throw new Exit(
        EXIT.busy,
        `job ${JSON.stringify(job)} is held by somebody else (${answer.ahead} ahead of us)`,
        "BUSY",
      );
    case "lost":
      throw new Exit(EXIT.lost, describeLoss(answer.error, status !== undefined, key), "LOST");
    case "present": {
      const age = formatDuration(answer.present.ageMs);
      report.note(`a result is there already, ${age} old; the command did not run`, {
        outcome: "present",
        token: answer.present.tokenText,
      });
      const { value } = (await sink?.readResult(key ?? "")) ?? {};
      if (value !== undefined) await report.result(value);
      return;
    }
    case "done": {
      const number = status === undefined ? 0 : exitStatusNumber(status);
      if (key !== undefined) {
        report.note(`the command ended with ${number}; nothing was committed`, { status: number });
      }
      process.exitCode = number;
      return;
    }
    default: {
      const refusal = refusalOf(answer, key ?? "");
      if (refusal !== undefined) throw refusal;
      warnOfObserved(report, answer, key ?? "");
      report.note(`${answer.outcome} at ${JSON.stringify(key)}, token ${answer.token.sequence}`, {
        outcome: answer.outcome,
        token: answer.token.text,
      });
    }
  }
}
