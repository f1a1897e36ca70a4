/**
 * What callers give to the sink, checked and in the form in which the scripts take it. Nothing is sent that the scripts
 * would have to refuse.
 */
import { OptionError, ResultTooLargeError } from "../errors.js";
import { checkJobId } from "../job-id.js";
import type { ClaimIdentity, CommitRequest, WriteOptions } from "../sink.js";
import { fenceKeyOf, floorKeyOf } from "./fence-key.js";
import { storedHolder, storedJob } from "./stored-form.js";

/** Largest result: what a Redis string can hold, 512 MB. */
export const RESULT_BYTES_MAX = 512 * 1024 * 1024;

/** Longest delay of a timer, about 24 days. */
const TIMEOUT_MS_MAX = 2_147_483_647;

/** A result's key with those beside it: result, fence, floor. */
export function keysOf(key: string): [result: string, fence: string, floor: string] {
  return [key, fenceKeyOf(key), floorKeyOf(key)];
}

/** Token, job and holder as they are sent. */
export function identityOf({ token, job, holder = "" }: ClaimIdentity): [string, string, string] {
  if (typeof holder !== "string") throw new OptionError("holder must be a text");
  return [token.text, storedJob(checkJobId(job)), storedHolder(holder)];
}

/** A copy: a repeat must send the same bytes, whatever the caller does with the original meanwhile. */
export function bytesOf(value: Uint8Array | string): Buffer {
  if (typeof value !== "string" && !(value instanceof Uint8Array)) {
    throw new OptionError(`value must be a text or a Uint8Array; it is of type ${typeof value}`);
  }
  if (typeof value === "string" && !value.isWellFormed()) {
    throw new OptionError("value is not valid Unicode: it holds half of a surrogate pair");
  }
  const bytes = typeof value === "string" ? Buffer.byteLength(value) : value.byteLength;
  if (bytes > RESULT_BYTES_MAX) {
    throw new ResultTooLargeError(
      `the result is ${bytes} bytes long; Redis holds at most ${RESULT_BYTES_MAX}`,
    );
  }
  if (typeof value === "string") return Buffer.from(value);
  const copy = Buffer.allocUnsafe(value.byteLength);
  copy.set(value);
  return copy;
}

export function ttlOf({ ttlMs }: WriteOptions): string {
  return wholeMs("ttlMs", ttlMs);
}

/** Whole milliseconds as text; empty for none. */
export function wholeMs(option: string, ms: number | undefined): string {
  if (ms === undefined) return "";
  if (!Number.isSafeInteger(ms) || ms < 1) {
    throw new OptionError(`${option} must be a whole number from 1 to 2^53 - 1; it is ${ms}`);
  }
  return String(ms);
}

export function modeOf({ mode = "once" }: Pick<CommitRequest, "mode">): string {
  if (mode !== "once" && mode !== "update") {
    throw new OptionError(`mode must be "once" or "update"; it is ${JSON.stringify(mode)}`);
  }
  return mode;
}

/** A timeout that a timer can wait for. */
export function duration(option: string, ms: number): number {
  if (typeof ms !== "number" || !(ms > 0 && ms <= TIMEOUT_MS_MAX)) {
    throw new OptionError(
      `${option} must be a number of milliseconds above 0 and at most ${TIMEOUT_MS_MAX}; it is ${ms}`,
    );
  }
  return ms;
}
