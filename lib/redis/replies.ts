/**
 * The reply codes of the scripts, and what each means: an answer of the sink, something to be done first, or an error.
 * A test holds this file and the scripts' headers against the scripts.
 */
import {
  FenceCorruptError,
  OptionError,
  ResultTypeError,
  SinkDeniedError,
  SinkFaultError,
  TokenError,
} from "../errors.js";
import type {
  AdvanceAnswer,
  CommitAllAnswer,
  CommitAnswer,
  InvalidateAnswer,
  PresentResult,
  Refusal,
} from "../sink.js";
import type { Said } from "./fenced-write.js";
import type { ScriptName } from "./script-files.js";

const CLAIM_FAULTS = ["wrongtype", "corrupt", "badtoken", "badargument", "noperm"];
const REFUSALS = ["observed", "stale", "foreign", "floor"];

/** Which codes each script replies with, as the first item. */
export const REPLY_CODES: Record<ScriptName, readonly string[]> = {
  advanceFence: ["advanced", "current", ...REFUSALS, ...CLAIM_FAULTS],
  commitResult: [
    ...["committed", "duplicate", "conflict", "superseded", "lost", "unstaged"],
    ...[...REFUSALS, ...CLAIM_FAULTS],
  ],
  commitResults: [
    ...["committed", "duplicate", "conflict", "superseded", "lost"],
    ...[...REFUSALS, ...CLAIM_FAULTS],
  ],
  invalidateResult: ["invalidated", "superseded", "lost", ...REFUSALS, ...CLAIM_FAULTS],
  readResult: ["result", "wrongtype", "corrupt"],
  raiseFloor: ["raised", "current", "stale", "corrupt", "badtoken"],
  dropFence: ["dropped", "kept", "corrupt", "badtoken", "badargument"],
};

/** What a reply of `advanceFence` says. */
export function advanceAnswer(reply: unknown, key: string): Said<AdvanceAnswer> {
  const [code, ...fields] = textsOf(reply);
  if (code === "advanced" || code === "current") {
    return { outcome: code, present: presentOf(fields) };
  }
  return notWritten(code, fields, key) as Said<AdvanceAnswer>; // it refuses with fewer codes
}

/** What a reply of `commitResult` says; `unstaged` is for who has staged a value. */
export function commitAnswer(
  reply: unknown,
  key: string,
): Said<CommitAnswer | { outcome: "unstaged" }> {
  const [code, ...fields] = textsOf(reply);
  if (code === "committed" || code === "duplicate") {
    return { outcome: code, revision: Number(fields[0]) };
  }
  if (code === "unstaged") return { outcome: code };
  return notWritten(code, fields, key);
}

/** What a reply of `commitResults` says; the first keys are only guarded. */
export function commitAllAnswer(
  reply: unknown,
  keys: string[],
  guardCount = 0,
): Said<CommitAllAnswer> {
  const [code = "", ...fields] = textsOf(reply);
  if (code === "committed" || code === "duplicate") {
    return { outcome: code, revisions: fields.slice(guardCount).map(Number) };
  }
  const [number, ...rest] = fields;
  const isAboutAll = ["badtoken", "badargument", "noperm"].includes(code);
  const key = keys[Number(number) - 1] ?? keys.join(", ");
  return { ...notWritten(code, isAboutAll ? fields : rest, key), key } as Said<CommitAllAnswer>;
}

/** What a reply of `invalidateResult` says. */
export function invalidateAnswer(reply: unknown, key: string): Said<InvalidateAnswer> {
  const [code, ...fields] = textsOf(reply);
  if (code === "invalidated") return { outcome: code, found: fields[0] === "1" };
  return notWritten(code, fields, key) as Said<InvalidateAnswer>; // it refuses with fewer codes
}

function notWritten(
  code: string | undefined,
  fields: string[],
  key: string,
): Said<Refusal | { outcome: "observed"; refusal: Refusal }> {
  const [field = ""] = fields;
  if (code === "lost") return { outcome: "lost" };
  if (code === "floor") return { outcome: "floor", key, floorText: field };
  if (code !== "observed") return refusalOf(code, field, key);
  const [, floor = ""] = fields;
  const refusal = field === "floor" ? refusalOf("stale", floor, key) : undefined;
  return { outcome: "observed", refusal: refusal ?? refusalOf(field, floor, key) };
}

function refusalOf(code: string | undefined, field: string, key: string): Refusal {
  switch (code) {
    case "stale":
      return { outcome: code, fenceText: field };
    case "foreign":
      return { outcome: code, owner: field };
    case "conflict":
    case "superseded":
      return { outcome: code };
    default:
      throw faultOf(code, field, key);
  }
}

function presentOf(fields: string[]): PresentResult | undefined {
  const [tokenText = "", revision, committedAt, now] = fields;
  if (tokenText === "") return undefined;
  return { tokenText, revision: Number(revision), ageMs: ageMs(Number(committedAt), Number(now)) };
}

/** Never negative: the server's clock may have been set back since the commit. */
export function ageMs(committedAtMs: number, nowMs: number): number {
  return Math.max(0, nowMs - committedAtMs);
}

/** The error that a reply means. */
export function faultOf(code: string | undefined, field: string, key: string): Error {
  const shownKey = JSON.stringify(key);
  switch (code) {
    case "wrongtype":
      return new ResultTypeError(
        `the key ${shownKey} holds a ${field}, not a string; nothing was changed`,
      );
    case "corrupt":
      return new FenceCorruptError(
        `the fence of ${shownKey} was not written by fencekeeper (${field}); nothing was changed`,
      );
    case "badtoken":
      return new TokenError("Redis was given a token that is not in canonical form");
    case "badargument":
      return new OptionError(`the argument ${field} cannot be used; nothing was changed`);
    case "noperm":
      return new SinkDeniedError(
        `the Redis user may not run ${field}, which is needed for ${shownKey}; nothing was changed`,
      );
    default:
      return new SinkFaultError(`a script gave a reply that is not known: ${code}`);
  }
}

export function textsOf(reply: unknown): string[] {
  return buffersOf(reply).map(String);
}

export function buffersOf(reply: unknown): Buffer[] {
  if (Array.isArray(reply) && reply.every((item) => Buffer.isBuffer(item))) return reply;
  throw new SinkFaultError("a script gave a reply that is not an array of bulk strings");
}
