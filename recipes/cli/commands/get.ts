/**
 * `get KEY`: the result, as it was committed; with `--json` its token, age and state; with `--wait` once it is there.
 */
import type { Command } from "commander";
import { OptionError } from "../../../lib/errors.js";
import type { ReadAnswer, Sink } from "../../../lib/sink.js";
import { addCommonOptions, type CommonFlags, reportOf, sinkOf } from "../common-options.js";
import { parseDurationMs } from "../duration.js";
import { EXIT, Exit } from "../exit.js";

interface GetFlags extends CommonFlags {
  wait?: string;
  newerThan?: string;
}

export function addGet(program: Command): void {
  const command = program
    .command("get")
    .summary("print a result")
    .description(
      "Prints the result at KEY as it was committed. With --json: token, age, state, and whether the value " +
        "still is the one that was committed. Exit 1 when there is no result, or none in time.",
    )
    .argument("<key>", "the result's key")
    .option("--wait <duration>", "wait so long for a committed result, without polling")
    .option("--newer-than <token>", "with --wait: only for the result of a newer token");
  addCommonOptions(command).action(async (key: string, flags: GetFlags) => {
    const report = reportOf(flags);
    const shownKey = JSON.stringify(key);
    const sink = sinkOf(flags);
    try {
      const { answer, isInTime } = await answerOf(sink, key, flags);
      if (report.json) await report.result(`${JSON.stringify(describeResult(answer))}\n`);
      if (!isInTime) {
        throw new Exit(EXIT.no, `no result came to ${shownKey} within ${flags.wait}`, "NO_RESULT");
      }
      if (answer.value === undefined) {
        throw new Exit(EXIT.no, `there is no result at ${shownKey}`, "NO_RESULT");
      }
      if (!report.json) await report.result(answer.value);
      if (answer.matches === false) {
        report.warn(
          "the value is not the one that was committed: something wrote it without a fence",
        );
      }
    } finally {
      await sink.close();
    }
  });
}

/** The result as it is, or the one that was waited for. */
async function answerOf(
  sink: Sink,
  key: string,
  { wait, newerThan }: GetFlags,
): Promise<{ answer: ReadAnswer; isInTime: boolean }> {
  if (wait === undefined) {
    if (newerThan !== undefined) throw new OptionError("--newer-than needs --wait");
    return { answer: await sink.readResult(key), isInTime: true };
  }
  const timeoutMs = parseDurationMs(wait, "--wait");
  const { outcome, ...answer } = await sink.waitFor(key, {
    timeoutMs,
    ...(newerThan !== undefined && { newerThan }),
  });
  return { answer, isInTime: outcome === "found" };
}

/** The JSON of a result; a value that is not UTF-8 text is given in base64. */
function describeResult({ key, value, fence, matches }: ReadAnswer): Record<string, unknown> {
  const text = value?.toString("utf8");
  const isText = text !== undefined && value?.equals(Buffer.from(text)) === true;
  return {
    key,
    value: value === undefined ? null : isText ? text : value.toString("base64"),
    encoding: value === undefined ? null : isText ? "utf8" : "base64",
    token: fence?.committed?.tokenText ?? null,
    sequence: fence?.committed === undefined ? null : sequenceOf(fence.committed.tokenText),
    ageMs: fence?.committed?.ageMs ?? null,
    revision: fence?.committed?.revision ?? null,
    holder: fence?.committed?.holder ?? null,
    matches: matches ?? null,
    job: fence?.job ?? null,
    state: fence?.state ?? null,
    fence: fence?.tokenText ?? null,
    stale: fence?.staleCount ?? 0,
    lastStaleToken: fence?.lastStale?.tokenText ?? null,
  };
}

/** The part of a token that people are shown. */
export function sequenceOf(tokenText: string): number {
  return Number(tokenText.slice(-10));
}
