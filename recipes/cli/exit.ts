/**
 * The exit codes of the command line, and which fault ends in which. They follow sysexits.h where it has a word.
 */
import { CommandStartError, FencekeeperError } from "../../lib/errors.js";

export const EXIT = {
  done: 0,
  /** `get`: there is no result at the key. `demo`: the story did not go as told. `doctor`: there are warnings. */
  no: 1,
  /** `doctor`: the promise is broken, or a server cannot be reached. */
  broken: 2,
  usage: 64,
  dataRefused: 65,
  unreachable: 69,
  bug: 70,
  stale: 73,
  output: 74,
  busy: 75,
  lost: 76,
  notAllowed: 77,
  configuration: 78,
} as const;

/** Ends a command with an exit code after its message was printed; for outcomes, which are no faults. */
export class Exit extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** A word for programs, printed with `--json`. */
    readonly code: string,
  ) {
    super(message);
  }
}

const BY_CODE: Record<string, number> = {
  OPTION_INVALID: EXIT.usage,
  JOB_ID_INVALID: EXIT.usage,
  TOKEN_INVALID: EXIT.usage,
  RESULT_KEY_INVALID: EXIT.usage,
  RESULT_KEY_TYPE: EXIT.dataRefused,
  RESULT_TOO_LARGE: EXIT.dataRefused,
  FENCE_CORRUPT: EXIT.dataRefused,
  ZOOKEEPER_UNREACHABLE: EXIT.unreachable,
  ZOOKEEPER_CONNECTION_LOSS: EXIT.unreachable,
  ZOOKEEPER_SESSION_LOST: EXIT.unreachable,
  ZOOKEEPER_SESSION_CLOSED: EXIT.unreachable,
  ZOOKEEPER_FAULT: EXIT.unreachable,
  SINK_UNREACHABLE: EXIT.unreachable,
  SINK_OUTCOME_UNKNOWN: EXIT.unreachable,
  SINK_OUT_OF_MEMORY: EXIT.unreachable,
  SINK_FAULT: EXIT.unreachable,
  COMMAND_NOT_STOPPED: EXIT.notAllowed,
  COMMAND_OUTPUT_INCOMPLETE: EXIT.dataRefused,
  CLAIM_LOST: EXIT.lost,
  ZOOKEEPER_NO_NODE: EXIT.configuration,
  ZOOKEEPER_BAD_VERSION: EXIT.unreachable,
  ZOOKEEPER_NOT_EMPTY: EXIT.configuration,
  ZOOKEEPER_UNSUPPORTED: EXIT.configuration,
  ZOOKEEPER_DENIED: EXIT.notAllowed,
  SINK_DENIED: EXIT.notAllowed,
  SINK_READ_ONLY: EXIT.configuration,
  CONFIGURATION_INVALID: EXIT.configuration,
  ZOOKEEPER_TLS: EXIT.configuration,
  SINK_TLS: EXIT.configuration,
  NATIVE_CLIENT_MISSING: EXIT.configuration,
  GENERATION_UNSAFE: EXIT.configuration,
  SEQUENCE_EXHAUSTED: EXIT.configuration,
  SERVERS_MISSING: EXIT.configuration,
  SERVER_NOT_STARTED: EXIT.unreachable,
};

/** The exit code of a fault; 70 for what none of our classes describes, which is a bug. */
export function exitStatusOf(error: unknown): number {
  if (error instanceof Exit) return error.status;
  if (error instanceof CommandStartError) return error.exitStatus;
  if (error instanceof FencekeeperError) return BY_CODE[error.code] ?? EXIT.bug;
  return EXIT.bug;
}
