/**
 * The reply of `readResult`: the value, and the fence beside it.
 */
import type { FenceRecord, ReadAnswer } from "../sink.js";
import { ageMs, buffersOf, faultOf } from "./replies.js";
import { digestOf } from "./stored-form.js";

/** What was read, with the encoding that the fence says the value has; empty for none. */
export interface StoredResult {
  answer: ReadAnswer;
  encoding: string;
}

/** @throws ResultTypeError, FenceCorruptError, SinkFaultError */
export function storedResult(reply: unknown, key: string): StoredResult {
  const items = buffersOf(reply);
  const [code, nowMs = "", found, , ...fields] = items.map((item, index) =>
    index === 3 ? "" : String(item),
  );
  if (code !== "result") throw faultOf(code, nowMs, key);
  const value = found === "1" ? items[3] : undefined;
  const { fence, encoding } = fenceOf(fields, Number(nowMs));
  const committed = fence?.committed;
  const matches = committed && (value === undefined ? false : digestOf(value) === committed.digest);
  return { answer: { key, value, fence, matches }, encoding };
}

function fenceOf(
  fields: string[],
  nowMs: number,
): { fence: FenceRecord | undefined; encoding: string } {
  const [tokenText = "", job = "", state, , ...result] = fields;
  const [committedToken = "", digest = "", revision, committedAt, holder = "", ...more] = result;
  const [encoding = "", stale, observed, lastStaleToken = "", lastStaleAt] = more;
  if (tokenText === "") return { fence: undefined, encoding: "" };
  const committedAtMs = Number(committedAt);
  const committed = {
    tokenText: committedToken,
    revision: Number(revision),
    ageMs: ageMs(committedAtMs, nowMs),
    digest,
    committedAtMs,
    holder,
  };
  const fence: FenceRecord = {
    tokenText,
    job,
    state: state === "committed" ? "committed" : "open",
    committed: committedToken === "" ? undefined : committed,
    staleCount: Number(stale),
    observedCount: Number(observed),
    lastStale:
      lastStaleToken === "" ? undefined : { tokenText: lastStaleToken, atMs: Number(lastStaleAt) },
  };
  return { fence, encoding };
}
