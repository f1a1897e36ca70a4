/**
 * What a claim can be asked for, and what the answers are.
 */
import { OptionError } from "../../lib/errors.js";
import { checkJobId } from "../../lib/job-id.js";
import type { PrefixOf } from "../../lib/telemetry/prefix.js";
import { ERA_MAX } from "../../lib/token.js";
import type { SessionSource } from "../../lib/zookeeper/session-port.js";
import type { Claim } from "./claim-port.js";

export interface ClaimOptions {
  zookeeper: SessionSource;
  /** Any string of 1 to 512 bytes in UTF-8. */
  job: string;
  /** How long to stand in the queue, in milliseconds. Default 0: do not wait. `Infinity`: as long as it takes. */
  waitMs?: number;
  /** How long to wait for ZooKeeper to answer at all, beyond `waitMs`. Default 5 000. */
  answerMs?: number;
  /** Gives up; the contender is removed. */
  signal?: AbortSignal;
  /** Root of the claim paths. Default `/fencekeeper`. */
  root?: string;
  /** An existing lock path of yours, instead of the claim path below the root; contenders there are respected. */
  lockPath?: string;
  /** Operator's number, raised when the ensemble is rebuilt. Default 0. */
  era?: number;
  /** How long the work takes to stop once it is told to, in milliseconds; see {@link Claim.stopGraceMs}. */
  stopGraceMs?: number;
  /** Lose the claim as soon as the connection breaks, instead of at the local deadline. Default false. */
  abortOnSuspended?: boolean;
  /** Who we are, for people who look; written into the znode. Default `host:pid`. */
  holder?: string;
  warn?: (message: string) => void;
  /** Told where we stand in the queue: when that is first known, and whenever it has changed. */
  onPosition?: (position: QueuePosition) => void;
  /** What stands for the job in metrics. Default: the text before its first colon. */
  jobPrefixOf?: PrefixOf;
  /** Where the uuid in a contender's name comes from. Default: the system's randomness. */
  uuid?: () => string;
}

export interface QueuePosition {
  /** Contenders ahead of ours. */
  ahead: number;
  /** Name of the first contender's znode. */
  holder: string;
}

export type ClaimAnswer =
  | { outcome: "granted"; claim: Claim }
  /** Not granted in time; `holder` is the name of the first contender's znode. */
  | { outcome: "busy"; holder: string; ahead: number };

/** @throws OptionError, JobIdError */
export function checkClaimOptions(options: ClaimOptions): void {
  checkJobId(options.job);
  const { waitMs = 0, era = 0 } = options;
  if (!(waitMs >= 0)) throw new OptionError(`waitMs must be 0 or more; it is ${waitMs}`);
  if (!Number.isInteger(era) || era < 0 || era > ERA_MAX) {
    throw new OptionError(`era must be a whole number from 0 to ${ERA_MAX}; it is ${era}`);
  }
}
