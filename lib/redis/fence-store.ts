/**
 * What `compact` does to the fences of a Redis: it meets them all, raises floors, and removes fences that a floor
 * stands for. The scripts decide, so that whatever happens meanwhile is seen.
 */
import { systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { FenceCorruptError, SinkFaultError, TokenError } from "../errors.js";
import { parseToken } from "../token.js";
import { type Asked, ask } from "./ask.js";
import type { Limits, ScriptRequest } from "./attempt.js";
import { RedisConnection } from "./connection.js";
import { fenceKeyOf, floorKeyOf, resultKeyOf } from "./fence-key.js";
import { scanFences } from "./fence-scan.js";
import type { RedisSinkOptions } from "./redis-sink.js";
import { faultOf, textsOf } from "./replies.js";
import { duration } from "./request-form.js";
import type { ScriptName } from "./script-files.js";
import { CALL_TIMEOUT_MS } from "./scripted-sink.js";
import { isWrongType } from "./server-error.js";

/** A fence that was met. */
export interface FoundFence {
  /** Of the result. */
  key: string;
  /** Canonical text of the token at which it stands. */
  tokenText: string;
  /** As it is stored: a long job id is a hash. */
  job: string;
  /** Whether a result is there. */
  hasResult: boolean;
}

/** A fence that is to be removed. */
export interface Drop {
  key: string;
  /** At which it stood when it was met, before the floor was raised. */
  tokenText: string;
  floorText: string;
  /** Also where the result is still there. */
  withResult: boolean;
}

/**
 * `dropped`: it is gone. It stays where it has another token now (`changed`), the floor is not the one that was set or
 * does not reach up to it (`floor`), or its result is there (`result`).
 */
export type DropAnswer = "dropped" | "changed" | "floor" | "result";

export interface FenceStore {
  /** Where the server is, for messages. */
  readonly place: string;
  /** All fences, in pages; one that is not ours to read is an Error in its place. */
  pages(signal?: AbortSignal): AsyncIterable<(FoundFence | Error)[]>;
  /** Raises a floor; false when it is higher already. */
  raiseFloor(floorKey: string, floorText: string, signal?: AbortSignal): Promise<boolean>;
  dropFence(drop: Drop, signal?: AbortSignal): Promise<DropAnswer>;
  /** Ends the connection; safe to call again. */
  close(): Promise<void>;
}

/** As for the sink; `keyPrefix` and the like are of no use here, because all fences are met. */
export type RedisFencesOptions = Pick<
  RedisSinkOptions,
  | "url"
  | "password"
  | "tls"
  | "sentinelPassword"
  | "natMap"
  | "timeoutMs"
  | "connectTimeoutMs"
  | "replyTimeoutMs"
  | "name"
  | "clock"
>;

/**
 * Opens what `compact` needs of a Redis. It connects with the first call.
 *
 * @throws OptionError when an option cannot be used
 */
export function openRedisFences(options: RedisFencesOptions): FenceStore {
  const { url, password, tls, sentinelPassword, natMap, clock = systemClock } = options;
  const timeoutMs = duration("timeoutMs", options.timeoutMs ?? CALL_TIMEOUT_MS);
  const connection = new RedisConnection({
    ...{ url, password, tls, sentinelPassword, natMap, clock },
    connectTimeoutMs: duration("connectTimeoutMs", options.connectTimeoutMs ?? timeoutMs),
    replyTimeoutMs: duration("replyTimeoutMs", options.replyTimeoutMs ?? timeoutMs),
    name: options.name ?? "fencekeeper-compact",
  });
  const limitsOf = (signal?: AbortSignal) => ({
    deadline: Deadline.after(timeoutMs, clock),
    signal,
  });
  return {
    ...scriptedFences(connection, limitsOf),
    async *pages(signal) {
      for await (const { fenceKeys } of scanFences(connection, () => limitsOf(signal))) {
        const found = fenceKeys.map((fenceKey) => {
          const key = resultKeyOf(fenceKey);
          if (key === undefined) return new FenceCorruptError(`${fenceKey} is no fence's key`);
          return find(connection, key, limitsOf(signal));
        });
        yield await Promise.all(found);
      }
    },
    close: () => connection.close(),
  };
}

/** The two writes, over anything that runs the scripts. */
export function scriptedFences(
  connection: Asked<ScriptRequest>,
  limitsOf: (signal?: AbortSignal) => Limits,
): Pick<FenceStore, "place" | "raiseFloor" | "dropFence"> {
  const call = (
    script: ScriptName,
    { keys, values }: { keys: string[]; values: string[] },
    signal: AbortSignal | undefined,
  ) => {
    const request = () => ({ script, keys, values });
    // sent again after a lost reply, it does what it has done
    const question = { request, writes: true, answerOf: textsOf };
    return ask<string[], ScriptRequest>(connection, question, limitsOf(signal));
  };
  return {
    place: connection.place,

    async raiseFloor(floorKey, floorText, signal) {
      const request = { keys: [floorKey], values: [floorText] };
      const [code, field = ""] = await call("raiseFloor", request, signal);
      if (code === "raised" || code === "current") return true;
      if (code === "stale") return false;
      throw faultOf(code, field, floorKey);
    },

    async dropFence({ key, tokenText, floorText, withResult }, signal) {
      const keys = [key, fenceKeyOf(key), floorKeyOf(key)];
      const values = [tokenText, floorText, withResult ? "1" : ""];
      const [code, field = ""] = await call("dropFence", { keys, values }, signal);
      if (code === "dropped") return code;
      if (code === "kept") return field as DropAnswer; // the reasons are the script's
      throw faultOf(code, field, key);
    },
  };
}

async function find(
  connection: RedisConnection,
  key: string,
  limits: Limits,
): Promise<FoundFence | Error> {
  const send = <Answer>(
    [command = "", ...values]: string[],
    answerOf: (reply: unknown) => Answer,
  ) => {
    const request = () => ({ command, values });
    return ask(connection, { request, writes: false, answerOf }, limits);
  };
  try {
    const [[tokenText = "", job = ""], hasResult] = await Promise.all([
      send(["HMGET", fenceKeyOf(key), "token", "job"], fieldsOf),
      send(["EXISTS", key], (reply) => Number(reply) === 1),
    ]);
    return { key, tokenText: parseToken(tokenText).text, job, hasResult };
  } catch (error) {
    return unreadable(error);
  }
}

/** A fence that is not one is left where it is: `doctor` says what is wrong with it. */
function unreadable(error: unknown): Error {
  const isStrange = error instanceof TokenError || isWrongType(error);
  if (isStrange) return error as Error;
  throw error;
}

function fieldsOf(reply: unknown): string[] {
  if (Array.isArray(reply)) return reply.map((field) => String(field ?? ""));
  throw new SinkFaultError("Redis gave a reply to HMGET that is not an array");
}
