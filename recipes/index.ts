/**
 * The public entry point: everything that a user of the library imports.
 */
export { type Clock, systemClock } from "../lib/clock.js";
export * from "../lib/errors.js";
export { decodeJobId, encodeJobId, JOB_ID_BYTES_MAX } from "../lib/job-id.js";
export { fenceKeyOf } from "../lib/redis/fence-key.js";
export { type FenceMode, FencePolicy, type FencePolicyOptions } from "../lib/redis/fence-policy.js";
export {
  type DropAnswer,
  type FenceStore,
  type FoundFence,
  openRedisFences,
  type RedisFencesOptions,
} from "../lib/redis/fence-store.js";
export type { FenceLoss } from "../lib/redis/held-fences.js";
export { openRedisSink, type RedisSinkOptions } from "../lib/redis/redis-sink.js";
export type * from "../lib/sink.js";
export {
  CHANNELS,
  type ClaimEvent,
  listen,
  type SessionEvent,
  type SinkEvent,
} from "../lib/telemetry/channels.js";
export type { PrefixOf } from "../lib/telemetry/prefix.js";
export { compareTokens, type FencingToken, parseToken } from "../lib/token.js";
export type { Session, SessionSource, SessionState } from "../lib/zookeeper/session-port.js";
export {
  type Access,
  type DigestAuth,
  type TlsOptions,
  ZooKeeper,
  type ZooKeeperOptions,
} from "../lib/zookeeper/zookeeper.js";
export {
  type Claim,
  type ClaimAnswer,
  type ClaimOptions,
  claim,
  type QueuePosition,
  type ReleaseAnswer,
  tryClaim,
} from "./claim.js";
export {
  type CompactOptions,
  type CompactReport,
  compact,
  type KeptWhy,
} from "./compact.js";
export {
  type ContenderStatus,
  type ContendersOptions,
  contenders,
  type QueueStatus,
} from "./contenders.js";
export { type DiagnoseOptions, diagnose } from "./doctor/diagnose.js";
export { type Finding, type Level, worstOf } from "./doctor/finding.js";
export {
  type FencedRunAnswer,
  type FencedRunOptions,
  fencedRun,
  type Handler,
  type ResultTarget,
} from "./fenced-run.js";
