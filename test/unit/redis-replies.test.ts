/** How replies of the scripts become answers and errors; what the scripts really reply is tested on a server. */
import { expect, it } from "vitest";
import {
  FenceCorruptError,
  OptionError,
  ResultTypeError,
  SinkDeniedError,
  SinkFaultError,
  TokenError,
} from "../../lib/errors.js";
import { storedResult } from "../../lib/redis/read-reply.js";
import { advanceAnswer, commitAllAnswer, commitAnswer } from "../../lib/redis/replies.js";
import { digestOf } from "../../lib/redis/stored-form.js";

const bulk = (...items: string[]) => items.map((item) => Buffer.from(item));
const readAnswer = (reply: unknown, key: string) => storedResult(reply, key).answer;
const TOKEN = "00000.00000000000000000007.0000000001";

it("a present result has an age, which is never negative", () => {
  const older = advanceAnswer(bulk("advanced", TOKEN, "2", "1000", "1500"), "k");
  expect(older).toEqual({
    outcome: "advanced",
    present: { tokenText: TOKEN, revision: 2, ageMs: 500 },
  });
  const later = advanceAnswer(bulk("current", TOKEN, "2", "1000", "900"), "k");
  expect(later).toEqual({
    outcome: "current",
    present: { tokenText: TOKEN, revision: 2, ageMs: 0 },
  });
});

it("an empty value is not the same as no value", () => {
  const fields = [TOKEN, "j", "committed", "h", TOKEN, digestOf(Buffer.alloc(0)), "1", "1000"];
  const rest = [...fields, "h", "", "0", "0", "", ""];
  const empty = readAnswer(bulk("result", "1500", "1", "", ...rest), "k");
  expect(empty.value).toEqual(Buffer.alloc(0));
  expect(empty.matches).toBe(true);
  const none = readAnswer(bulk("result", "1500", "0", "", ...rest), "k");
  expect(none.value).toBeUndefined();
  expect(none.matches).toBe(false);
});

it("a key without a fence has no fence, which is not token 0", () => {
  const answer = readAnswer(bulk("result", "1500", "1", "v", ...Array(14).fill("")), "k");
  expect(answer).toEqual({
    key: "k",
    value: Buffer.from("v"),
    fence: undefined,
    matches: undefined,
  });
});

it.each([
  [["wrongtype", "list"], ResultTypeError],
  [["corrupt", "token"], FenceCorruptError],
  [["badtoken"], TokenError],
  [["badargument", "ttl"], OptionError],
  [["noperm", "HSET"], SinkDeniedError],
  [["surprise"], SinkFaultError],
])("the reply %j is told as the error it is", (items, errorClass) => {
  expect(() => advanceAnswer(bulk(...items), "k")).toThrow(errorClass);
  expect(() => commitAnswer(bulk(...items), "k")).toThrow(errorClass);
  expect(() => readAnswer(bulk(...items), "k")).toThrow(errorClass);
});

it("a refusal of one of several results names its key", () => {
  const answer = commitAllAnswer(bulk("stale", "2", TOKEN), ["a", "b"]);
  expect(answer).toEqual({ outcome: "stale", fenceText: TOKEN, key: "b" });
  expect(() => commitAllAnswer(bulk("wrongtype", "1", "list"), ["a", "b"])).toThrow(/"a"/);
  expect(() => commitAllAnswer(bulk("badargument", "count"), ["a", "b"])).toThrow(/count/);
});

it("what was let through in observe mode tells what it would have been refused with", () => {
  const observed = (...fields: string[]) => commitAnswer(bulk("observed", ...fields), "k");
  const stale = { outcome: "stale", fenceText: TOKEN };
  expect(observed("stale", TOKEN)).toEqual({ outcome: "observed", refusal: stale });
  expect(observed("floor", TOKEN)).toEqual({ outcome: "observed", refusal: stale });
  const conflict = { outcome: "conflict" };
  expect(observed("conflict")).toEqual({ outcome: "observed", refusal: conflict });
});

it.each([null, "committed", [], [null], [1], ["committed"], [[Buffer.from("committed")]]])(
  "a reply that is not an array of bulk strings is a fault: %j",
  (reply) => {
    expect(() => commitAnswer(reply, "k")).toThrow(SinkFaultError);
  },
);
