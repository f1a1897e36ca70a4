/**
 * What an error answer of a Redis server means. The server's code is at the start of the text, or, when Redis 6.2
 * reports it from inside a script, after `-`.
 */
import {
  ConfigurationError,
  type FencekeeperError,
  ResultKeyError,
  SinkDeniedError,
  SinkFaultError,
  SinkOutOfMemoryError,
  SinkReadOnlyError,
} from "../errors.js";

/** The server is only busy: it ran nothing, and the same request may be taken later. */
const PASSING_CODES = new Set(["LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN"]);

/** The server of a cluster has not got the key, or not any more: it ran nothing. */
export function isRedirection(message: string): boolean {
  return ["MOVED", "ASK"].includes(serverCode(message));
}

/** A replica, which was the primary a moment ago where others tell us who that is. */
export function isReplica(message: string): boolean {
  return ["READONLY", "MASTERDOWN"].includes(serverCode(message));
}

const DENIED_CODES = new Set(["NOAUTH", "WRONGPASS", "NOPERM"]);

/** A replica, a primary that cannot save or has too few replicas, and a replica that has lost its primary. */
const NO_WRITES_CODES = new Set(["READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN"]);

const FROM_SCRIPT = /^ERR Error running script .*?: -?([A-Z]+) /s;

/** A command that the script's user may not run, in the words of 6.2 and 7.0 and in those of 7.2: without a code. */
const DENIED_IN_SCRIPT =
  /^ERR (?:Error running script .*: )?(?:The user executing the script|ACL failure in script)/s;

/** The server's error code, such as `OOM`. */
export function serverCode(message: string): string {
  if (DENIED_IN_SCRIPT.test(message)) return "NOPERM";
  return FROM_SCRIPT.exec(message)?.[1] ?? /^[A-Z]+/.exec(message)?.[0] ?? "";
}

const TOO_MANY_CLIENTS = /^ERR max number of clients reached/;

/** True when the request was certainly not run and asking again may help. */
export function isPassing(message: string): boolean {
  return PASSING_CODES.has(serverCode(message)) || TOO_MANY_CLIENTS.test(message);
}

/** The error to throw for an error answer. `cause` must hold no secrets. */
export function errorFromServer(cause: Error): FencekeeperError {
  const code = serverCode(cause.message);
  if (DENIED_CODES.has(code)) {
    return new SinkDeniedError(`Redis refused the request: ${cause.message}`, { cause });
  }
  if (code === "CROSSSLOT") {
    return new ResultKeyError(
      "the keys are in several slots of the Redis Cluster: give them one hash tag, as in {job}:a and {job}:b",
      { cause },
    );
  }
  if (code === "OOM") {
    return new SinkOutOfMemoryError("Redis is out of memory and takes no writes", { cause });
  }
  if (NO_WRITES_CODES.has(code)) {
    return new SinkReadOnlyError(`Redis takes no writes: ${cause.message}`, { cause });
  }
  return new SinkFaultError(`Redis answered with an error: ${cause.message}`, { cause });
}

/** Whether an error says that a key holds another type than the command is for. */
export function isWrongType(error: unknown): boolean {
  if (!(error instanceof SinkFaultError)) return false;
  return error.cause instanceof Error && serverCode(error.cause.message) === "WRONGTYPE";
}

const NO_SUCH_CLIENT = /^ERR The client ID you want redirect to does not exist/;

/**
 * What it means when a server does not let a key be watched: a refusal that lasts is for people, because a wait that
 * looked again and again instead would go unnoticed.
 */
export function watchError(cause: Error): Error {
  if (isPassing(cause.message) || isRedirection(cause.message)) return cause;
  // the connection that listens has just been closed
  if (NO_SUCH_CLIENT.test(cause.message)) return new Error(cause.message);
  return new SinkDeniedError(
    `Redis does not let results be waited for: ${cause.message}. The user needs ` +
      "+client|id +client|tracking +subscribe +ping and the channel &__redis__:invalidate",
    { cause: new Error(cause.message) },
  );
}

/** The error to throw when the server has no database of the number in the URL. */
export function databaseError(database: number, cause: Error): FencekeeperError {
  return new ConfigurationError(`Redis cannot use database ${database}: ${cause.message}`, {
    cause,
  });
}
