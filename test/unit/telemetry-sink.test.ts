/**
 * Goal: a sink tells how each of its calls ended, without changing an answer. Method: a sink that says what a test
 * wants.
 */
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { OptionError, SinkOutcomeUnknownError } from "../../lib/errors.js";
import { tellFenceLoss, toldSink } from "../../lib/redis/told-sink.js";
import type { CommitAnswer, ReadAnswer, Sink } from "../../lib/sink.js";
import { listen, type SinkEvent } from "../../lib/telemetry/channels.js";
import { makeToken } from "../../lib/token.js";
import { HandClock } from "../support/hand-clock.js";

const token = makeToken({ era: 0, generation: 7n, sequence: 1 });
const request = { key: "report:2024", job: "nightly", token, value: "the secret value" };
const NOTHING: ReadAnswer = { key: "k", value: undefined, fence: undefined, matches: undefined };

let clock: HandClock;
let answer: unknown;
let events: SinkEvent[];

/** Answers every call with `answer`, or throws it, half a second later. */
const handMade: Sink = {
  advanceFence: () => answerAfterHalfASecond(),
  commitResult: () => answerAfterHalfASecond(),
  commitResults: () => answerAfterHalfASecond(),
  invalidateResult: () => answerAfterHalfASecond(),
  readResult: () => answerAfterHalfASecond(),
  waitFor: () => answerAfterHalfASecond(),
  keepRaised: () => () => {},
  close: async () => {},
};

async function answerAfterHalfASecond<Answer>(): Promise<Answer> {
  clock.move(500);
  if (answer instanceof Error) throw answer;
  return answer as Answer;
}

function listening(): void {
  onTestFinished(listen("sink", (event) => events.push(event)));
}

const sinkWith = (keyPrefixOf?: (key: string) => string) =>
  toldSink(handMade, { clock, keyPrefixOf });

beforeEach(() => {
  clock = new HandClock();
  events = [];
});

describe("a sink that tells", () => {
  it("tells operation, outcome, prefix and duration, and gives the sink's own answer", async () => {
    listening();
    answer = { outcome: "stale", fenceText: "00000.00000000000000000007.0000000002" };
    expect(await sinkWith().commitResult(request)).toBe(answer);
    expect(events).toEqual([
      { operation: "commit", outcome: "stale", keyPrefix: "report", durationMs: 500 },
    ]);
  });

  it("never tells a value, a token or the whole key", async () => {
    listening();
    for (answer of [{ outcome: "committed", revision: 1 }, new Error("the secret value")]) {
      await sinkWith()
        .commitResult(request)
        .catch(() => {}); // the error is the point
    }
    expect(events).toHaveLength(2);
    expect(JSON.stringify(events)).not.toMatch(/secret|2024|0000000001/);
  });

  it.each<[Partial<ReadAnswer>, string]>([
    [{}, "absent"],
    [{ value: Buffer.from("v") }, "present"],
    [{ value: Buffer.from("v"), matches: true }, "present"],
    [{ value: Buffer.from("v"), matches: false }, "overwritten"],
    [{ matches: false }, "absent"],
  ])("tells a read of %j as %s", async (found, outcome) => {
    listening();
    answer = { ...NOTHING, ...found };
    await sinkWith().readResult("k");
    expect(events).toMatchObject([{ operation: "read", outcome, keyPrefix: "k" }]);
  });

  it.each(["found", "timeout"])("tells of a wait that it was %s", async (outcome) => {
    listening();
    answer = { ...NOTHING, outcome, key: "report:2024" };
    expect(await sinkWith().waitFor("report:2024")).toBe(answer);
    expect(events).toEqual([{ operation: "wait", outcome, keyPrefix: "report", durationMs: 500 }]);
  });

  it("tells one call for several results as one commit, by the first key unless the answer names another", async () => {
    listening();
    const { job } = request;
    const results = [
      { key: "report:1", value: "v" },
      { key: "page:1", value: undefined },
    ];
    answer = { outcome: "committed", revisions: [1, 0] };
    await sinkWith().commitResults({ job, token, results });
    answer = { outcome: "foreign", owner: "render", key: "page:1" };
    await sinkWith().commitResults({ job, token, results });
    answer = { outcome: "invalidated", found: true };
    await sinkWith().invalidateResult(request);
    expect(events).toMatchObject([
      { operation: "commit", outcome: "committed", keyPrefix: "report" },
      { operation: "commit", outcome: "foreign", keyPrefix: "page" },
      { operation: "invalidate", outcome: "invalidated", keyPrefix: "report" },
    ]);
  });

  it("tells what would have been refused, and the key that decided a call", async () => {
    listening();
    answer = { outcome: "observed", refusal: { outcome: "stale" }, key: "page:7" };
    await sinkWith().advanceFence(request);
    expect(events).toMatchObject([
      { operation: "advance", outcome: "observed", refusal: "stale", keyPrefix: "page" },
    ]);
  });

  it.each([
    [new SinkOutcomeUnknownError("lost"), { outcome: "unknown", code: "SINK_OUTCOME_UNKNOWN" }],
    [new OptionError("bad"), { outcome: "failed", code: "OPTION_INVALID" }],
    [new Error("a surprise"), { outcome: "failed", code: "OTHER" }],
  ])("tells of %s and throws it on", async (error, told) => {
    listening();
    answer = error;
    await expect(sinkWith().advanceFence(request)).rejects.toBe(error);
    expect(events).toMatchObject([{ operation: "advance", ...told }]);
  });

  it("tells a call that its caller gave up as cancelled, without a code", async () => {
    listening();
    const reason = new OptionError("changed my mind");
    answer = reason;
    const call = sinkWith().commitResult(request, { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    expect(events).toMatchObject([{ outcome: "cancelled" }]);
    expect(events[0]).not.toHaveProperty("code");
  });

  it("looks at nothing while nobody listens", async () => {
    answer = { outcome: "committed", revision: 1 };
    let asked = 0;
    const sink = sinkWith(() => `${asked++}`);
    await sink.commitResult(request);
    tellFenceLoss("report:2024", () => `${asked++}`);
    expect(asked).toBe(0);
    listening();
    await sink.commitResult(request);
    expect(asked).toBe(1);
  });

  it("tells a fence that the server had lost", () => {
    listening();
    tellFenceLoss("report:2024");
    expect(events).toEqual([
      { operation: "fence", outcome: "lost", keyPrefix: "report", durationMs: 0 },
    ]);
  });

  it("does its work all the same when the prefix function fails", async () => {
    listening();
    answer = { outcome: "committed", revision: 1 };
    const sink = sinkWith(() => {
      throw new Error("no prefix today");
    });
    expect(await sink.commitResult(request)).toEqual(answer satisfies unknown as CommitAnswer);
    expect(events).toMatchObject([{ outcome: "committed", keyPrefix: "" }]);
  });
});

describe("a prefix", () => {
  it.each([
    ["report:2024:05", "report"],
    ["report", "report"],
    ["{report:7}:page", "report"],
    ["{report}:7", "report"],
    [":7", ""],
    ["x".repeat(1_000), "x".repeat(64)],
  ])("of %s is %s", (key, prefix) => {
    listening();
    tellFenceLoss(key);
    expect(events[0]?.keyPrefix).toBe(prefix);
  });

  it("is what the caller's own function says, within its length", () => {
    listening();
    tellFenceLoss("a/b/c", (key) => key.split("/")[0] ?? "");
    tellFenceLoss("a", () => "y".repeat(1_000));
    expect(events.map(({ keyPrefix }) => keyPrefix)).toEqual(["a", "y".repeat(64)]);
  });
});
