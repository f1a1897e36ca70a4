/**
 * The reply codes of the scripts, and what each means: an answer of the sink, or an error. A test holds this file and
 * the scripts' headers against the scripts.
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
  CommitAnswer,
  FenceRecord,
  PresentResult,
  ReadAnswer,
} from "../sink.js";
import type { ScriptName } from "./script-files.js";
import { digestOf } from "./stored-form.js";

/** Every code that a script replies with, as its first item. */
export const CODE = {
  advanced: "advanced",
  current: "current",
  committed: "committed",
  duplicate: "duplicate",
  conflict: "conflict",
  stale: "stale",
  foreign: "foreign",
  result: "result",
  wrongType: "wrongtype",
  corrupt: "corrupt",
  badToken: "badtoken",
  badArgument: "badargument",
  noPermission: "noperm",
} as const;

const READ_FAULTS = [CODE.wrongType, CODE.corrupt];
const WRITE_FAULTS = [...READ_FAULTS, CODE.badToken, CODE.badArgument, CODE.noPermission];

/** Which codes each script replies with. */
export const REPLY_CODES: Record<ScriptName, readonly string[]> = {
  advanceFence: [CODE.advanced, CODE.current, CODE.stale, CODE.foreign, ...WRITE_FAULTS],
  commitResult: [
    CODE.committed,
    CODE.duplicate,
    CODE.conflict,
    CODE.stale,
    CODE.foreign,
    ...WRITE_FAULTS,
  ],
  readResult: [CODE.result, ...READ_FAULTS],
};

/** The answer in a reply of `advanceFence`. */
export function advanceAnswer(reply: unknown, key: string): AdvanceAnswer {
  const [code, ...fields] = textsOf(reply);
  switch (code) {
    case CODE.advanced:
    case CODE.current:
      return { outcome: code, present: presentOf(fields) };
    case CODE.stale:
      return { outcome: code, fenceText: fields[0] ?? "" };
    case CODE.foreign:
      return { outcome: code, owner: fields[0] ?? "" };
    default:
      throw faultOf(code, fields[0] ?? "", key);
  }
}

/** The answer in a reply of `commitResult`. */
export function commitAnswer(reply: unknown, key: string): CommitAnswer {
  const [code, field = ""] = textsOf(reply);
  switch (code) {
    case CODE.committed:
    case CODE.duplicate:
      return { outcome: code, revision: Number(field) };
    case CODE.conflict:
      return { outcome: code };
    case CODE.stale:
      return { outcome: code, fenceText: field };
    case CODE.foreign:
      return { outcome: code, owner: field };
    default:
      throw faultOf(code, field, key);
  }
}

/** The answer in a reply of `readResult`. */
export function readAnswer(reply: unknown, key: string): ReadAnswer {
  const items = buffersOf(reply);
  const [code, nowMs = "", found, , ...fields] = items.map(String);
  if (code !== CODE.result) throw faultOf(code, nowMs, key);
  const value = found === "1" ? items[3] : undefined;
  const fence = fenceOf(fields, Number(nowMs));
  const committed = fence?.committed;
  const matches = committed && (value === undefined ? false : digestOf(value) === committed.digest);
  return { key, value, fence, matches };
}

function presentOf(fields: string[]): PresentResult | undefined {
  const [tokenText = "", revision, committedAt, now] = fields;
  if (tokenText === "") return undefined;
  return { tokenText, revision: Number(revision), ageMs: ageMs(Number(committedAt), Number(now)) };
}

function fenceOf(fields: string[], nowMs: number): FenceRecord | undefined {
  const [tokenText = "", job = "", state, , ...later] = fields;
  if (tokenText === "") return undefined;
  const [committedToken = "", digest = "", revision, committedAt, holder = "", ...refused] = later;
  const [stale, lastStaleToken = "", lastStaleAt] = refused;
  const committedAtMs = Number(committedAt);
  const committed = {
    tokenText: committedToken,
    revision: Number(revision),
    ageMs: ageMs(committedAtMs, nowMs),
    digest,
    committedAtMs,
    holder,
  };
  return {
    tokenText,
    job,
    state: state === "committed" ? "committed" : "open",
    committed: committedToken === "" ? undefined : committed,
    staleCount: Number(stale),
    lastStale:
      lastStaleToken === "" ? undefined : { tokenText: lastStaleToken, atMs: Number(lastStaleAt) },
  };
}

/** Never negative: the server's clock may have been set back since the commit. */
function ageMs(committedAtMs: number, nowMs: number): number {
  return Math.max(0, nowMs - committedAtMs);
}

function faultOf(code: string | undefined, field: string, key: string): Error {
  const shownKey = JSON.stringify(key);
  switch (code) {
    case CODE.wrongType:
      return new ResultTypeError(
        `the key ${shownKey} holds a ${field}, not a string; nothing was changed`,
      );
    case CODE.corrupt:
      return new FenceCorruptError(
        `the fence of ${shownKey} was not written by fencekeeper (${field}); nothing was changed`,
      );
    case CODE.badToken:
      return new TokenError("Redis was given a token that is not in canonical form");
    case CODE.badArgument:
      return new OptionError(`the argument ${field} cannot be used; nothing was changed`);
    case CODE.noPermission:
      return new SinkDeniedError(
        `the Redis user may not run ${field}, which is needed for ${shownKey}; nothing was changed`,
      );
    default:
      return new SinkFaultError(`a script gave a reply that is not known: ${code}`);
  }
}

function textsOf(reply: unknown): string[] {
  return buffersOf(reply).map(String);
}

function buffersOf(reply: unknown): Buffer[] {
  if (Array.isArray(reply) && reply.every((item) => Buffer.isBuffer(item))) return reply;
  throw new SinkFaultError("a script gave a reply that is not an array of bulk strings");
}
