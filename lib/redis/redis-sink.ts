/**
 * The sink in Redis: checks what it is given, and lets the scripts decide.
 *
 * A write whose reply is lost is asked for again with the same token until its deadline. Such a repeat is answered as
 * any other call would be: `duplicate` or `current` may then mean that the first attempt did it, and `stale` that a
 * newer token came after it or instead of it; whichever it was, nothing of a newer token was overwritten.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { OptionError, ResultTooLargeError } from "../errors.js";
import { checkJobId } from "../job-id.js";
import type { CallOptions, CommitRequest, Sink, WriteIdentity } from "../sink.js";
import { ask } from "./ask.js";
import { RedisConnection } from "./connection.js";
import { fenceKeyOf } from "./fence-key.js";
import { advanceAnswer, commitAnswer, readAnswer } from "./replies.js";
import { digestOf, storedHolder, storedJob } from "./stored-form.js";

/** Largest result: what a Redis string can hold, 512 MB. */
export const RESULT_BYTES_MAX = 512 * 1024 * 1024;

/** Longest delay of a timer, about 24 days. */
const TIMEOUT_MS_MAX = 2_147_483_647;

export interface RedisSinkOptions {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  url: string;
  /** How long a call may take, all retries included. Default: 5000. */
  timeoutMs?: number;
  /** How long one connect may take. Default: 2000. */
  connectTimeoutMs?: number;
  /**
   * How long the server may be silent while a reply is due, before another connection is tried. Raise it together
   * with `timeoutMs` where large results go over slow links. Default: half of `timeoutMs`.
   */
  replyTimeoutMs?: number;
  /** The connection's name in `CLIENT LIST`. Default: `fencekeeper`. */
  name?: string;
  clock?: Clock;
}

/**
 * Opens a sink. It connects with the first call; a wrong address or password is told then.
 *
 * @throws OptionError when an option cannot be used
 */
export function openRedisSink(options: RedisSinkOptions): Sink {
  const timeoutMs = duration("timeoutMs", options.timeoutMs ?? 5000);
  const clock = options.clock ?? systemClock;
  const connection = new RedisConnection({
    url: options.url,
    connectTimeoutMs: duration("connectTimeoutMs", options.connectTimeoutMs ?? 2000),
    replyTimeoutMs: duration("replyTimeoutMs", options.replyTimeoutMs ?? Math.ceil(timeoutMs / 2)),
    name: options.name ?? "fencekeeper",
    clock,
  });
  const limitsOf = (call: CallOptions = {}) => ({
    deadline: Deadline.after(duration("timeoutMs", call.timeoutMs ?? timeoutMs), clock),
    signal: call.signal,
  });

  return {
    async advanceFence(identity, call) {
      const keys = keysOf(identity.key);
      const [token, job, holder] = identityOf(identity);
      const answerOf = (reply: unknown) => advanceAnswer(reply, identity.key);
      const values = [token, job, holder];
      const question = { script: "advanceFence", keys, values, writes: true, answerOf } as const;
      return ask(connection, question, limitsOf(call));
    },

    async commitResult(request, call) {
      const keys = keysOf(request.key);
      const [token, job, holder] = identityOf(request);
      const value = bytesOf(request.value);
      const mode = modeOf(request);
      const values = [token, job, value, digestOf(value), ttlOf(request), mode, holder];
      const answerOf = (reply: unknown) => commitAnswer(reply, request.key);
      const question = { script: "commitResult", keys, values, writes: true, answerOf } as const;
      return ask(connection, question, limitsOf(call));
    },

    async readResult(key, call) {
      const answerOf = (reply: unknown) => readAnswer(reply, key);
      const question = { keys: keysOf(key), values: [], writes: false, answerOf };
      return ask(connection, { script: "readResult", ...question }, limitsOf(call));
    },

    close: () => connection.close(),
  };
}

function keysOf(key: string): [string, string] {
  return [key, fenceKeyOf(key)];
}

function identityOf({ token, job, holder = "" }: WriteIdentity): [string, string, string] {
  if (typeof holder !== "string") throw new OptionError("holder must be a text");
  return [token.text, storedJob(checkJobId(job)), storedHolder(holder)];
}

/** A copy: a repeat must send the same bytes, whatever the caller does with the original meanwhile. */
function bytesOf(value: Uint8Array | string): Buffer {
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
  return typeof value === "string" ? Buffer.from(value) : Buffer.from(value);
}

function ttlOf({ ttlMs }: CommitRequest): string {
  if (ttlMs === undefined) return "";
  if (!Number.isSafeInteger(ttlMs) || ttlMs < 1) {
    throw new OptionError(`ttlMs must be a whole number from 1 to 2^53 - 1; it is ${ttlMs}`);
  }
  return String(ttlMs);
}

function modeOf({ mode = "once" }: CommitRequest): string {
  if (mode !== "once" && mode !== "update") {
    throw new OptionError(`mode must be "once" or "update"; it is ${JSON.stringify(mode)}`);
  }
  return mode;
}

function duration(option: string, ms: number): number {
  if (typeof ms !== "number" || !(ms > 0 && ms <= TIMEOUT_MS_MAX)) {
    throw new OptionError(
      `${option} must be a number of milliseconds above 0 and at most ${TIMEOUT_MS_MAX}; it is ${ms}`,
    );
  }
  return ms;
}
