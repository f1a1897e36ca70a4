/**
 * Every fault of fencekeeper as a class with a stable `code`.
 * Expected outcomes (a claim that is busy, a stale write) are values, not errors, and are not here.
 */

/**
 * The base of all errors thrown by fencekeeper.
 *
 * `definite` answers one question: is it known that the operation did *not* take effect? After an error with
 * `definite: false` it may have happened, or may still happen.
 */
export abstract class FencekeeperError extends Error {
  abstract readonly code: string;
  readonly definite: boolean = true;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An option or argument has a value that cannot be used; nothing was tried. */
export class OptionError extends FencekeeperError {
  readonly code = "OPTION_INVALID";
}

/** A setting is well formed but cannot work on this system (missing chroot, era behind the fence…). */
export class ConfigurationError extends FencekeeperError {
  readonly code = "CONFIGURATION_INVALID";
}

/** A job id is empty, too long or not valid Unicode. */
export class JobIdError extends FencekeeperError {
  readonly code = "JOB_ID_INVALID";
}

/** A text is not a fencing token in canonical form, or a part of a token is out of its range. */
export class TokenError extends FencekeeperError {
  readonly code = "TOKEN_INVALID";
}

/** The claim path's `czxid` is too large to have arrived exactly from the ZooKeeper client (above 2^53 - 1). */
export class GenerationError extends FencekeeperError {
  readonly code = "GENERATION_UNSAFE";
}

/** The claim path's counter is at its end; sequence numbers there are neither unique nor rising. */
export class SequenceExhaustedError extends FencekeeperError {
  readonly code = "SEQUENCE_EXHAUSTED";
}

/** The native part of the ZooKeeper client was not built or cannot be loaded. */
export class NativeClientError extends FencekeeperError {
  readonly code = "NATIVE_CLIENT_MISSING";
}

/** No ZooKeeper server answered within the stated time. */
export class ZooKeeperUnreachableError extends FencekeeperError {
  readonly code = "ZOOKEEPER_UNREACHABLE";
}

/** TLS with ZooKeeper fails for a reason that stays: a certificate that does not verify, or ours is not accepted. */
export class ZooKeeperTlsError extends FencekeeperError {
  readonly code = "ZOOKEEPER_TLS";
}

/** A ZooKeeper request failed; `operation` and `path` say which, `zookeeperCode` is the server's or client's number. */
export abstract class ZooKeeperRequestError extends FencekeeperError {
  constructor(
    message: string,
    readonly operation: string,
    readonly path: string,
    readonly zookeeperCode: number,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** The connection broke, or no reply came in time, while a request was under way; it may have taken effect. */
export class ConnectionLossError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_CONNECTION_LOSS";
  override readonly definite = false;
}

/** The session has expired or was given up; its ephemeral nodes are gone or soon will be. */
export class SessionLostError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_SESSION_LOST";
  override readonly definite = false;
}

/** The session was closed by this process; no request is sent any more. */
export class SessionClosedError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_SESSION_CLOSED";
  override readonly definite = false;
}

/** The znode, or the parent of a znode to be made, does not exist. */
export class NoNodeError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_NO_NODE";
}

/** The znode exists already. */
export class NodeExistsError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_NODE_EXISTS";
}

/** The znode has children, and cannot be deleted. */
export class NotEmptyError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_NOT_EMPTY";
}

/** What was to be changed has another version than the one that was expected. */
export class BadVersionError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_BAD_VERSION";
}

/** The server's access control list (ACL) forbids the request, or refused our credentials. */
export class ZooKeeperDeniedError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_DENIED";
}

/** The server does not know the request (a container node on a server before 3.5). */
export class ZooKeeperUnsupportedError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_UNSUPPORTED";
}

/** Any other answer of the ZooKeeper client or server; see `zookeeperCode`. */
export class ZooKeeperFaultError extends ZooKeeperRequestError {
  readonly code = "ZOOKEEPER_FAULT";
  override readonly definite = false;
}

/** Why a claim ended without being released. */
export type LossReason = "expired" | "deleted" | "deadline" | "suspended" | "closed";

/** The claim was lost; the reason of an aborted claim signal. Nothing is said about work already done. */
export class ClaimLostError extends FencekeeperError {
  readonly code = "CLAIM_LOST";
  override readonly definite = false;

  constructor(
    message: string,
    readonly reason: LossReason,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Redis could not be reached in time, and the request was certainly not sent. */
export class SinkUnreachableError extends FencekeeperError {
  readonly code = "SINK_UNREACHABLE";
}

/** A write was sent to Redis and no answer came before the deadline: it may have happened or may still happen. */
export class SinkOutcomeUnknownError extends FencekeeperError {
  readonly code = "SINK_OUTCOME_UNKNOWN";
  override readonly definite = false;
}

/** TLS with Redis fails for a reason that stays: a certificate that does not verify, or ours is not accepted. */
export class SinkTlsError extends FencekeeperError {
  readonly code = "SINK_TLS";
}

/** Redis refused our user, our password, or a command that the scripts need. */
export class SinkDeniedError extends FencekeeperError {
  readonly code = "SINK_DENIED";
}

/** Redis is out of memory and takes no writes. */
export class SinkOutOfMemoryError extends FencekeeperError {
  readonly code = "SINK_OUT_OF_MEMORY";
}

/** The Redis server is a read-only replica, or refuses writes for another stated reason. */
export class SinkReadOnlyError extends FencekeeperError {
  readonly code = "SINK_READ_ONLY";
}

/** Any other error answer of Redis; the cause holds it. */
export class SinkFaultError extends FencekeeperError {
  readonly code = "SINK_FAULT";
  override readonly definite = false;
}

/** A result key cannot have its fence in the same slot, is empty, or is itself a fence. */
export class ResultKeyError extends FencekeeperError {
  readonly code = "RESULT_KEY_INVALID";
}

/** The result key holds something other than a string; nothing was changed. */
export class ResultTypeError extends FencekeeperError {
  readonly code = "RESULT_KEY_TYPE";
}

/** The fence beside the result key is not one that fencekeeper wrote; nothing was changed. */
export class FenceCorruptError extends FencekeeperError {
  readonly code = "FENCE_CORRUPT";
}

/** A result is larger than the limit; it is refused, never cut. */
export class ResultTooLargeError extends FencekeeperError {
  readonly code = "RESULT_TOO_LARGE";
}

/** The command could not be started: not found (exit status 127) or not executable (126). */
export class CommandStartError extends FencekeeperError {
  readonly code = "COMMAND_NOT_STARTED";

  constructor(
    message: string,
    readonly exitStatus: 126 | 127,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** No servers were given and none can be started here; the message has the command that installs them. */
export class ServersMissingError extends FencekeeperError {
  readonly code = "SERVERS_MISSING";
}
