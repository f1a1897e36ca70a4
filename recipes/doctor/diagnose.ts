/**
 * The doctor: reads what can be read of Redis and ZooKeeper, and says what would break the promise. It writes nothing.
 */
import {
  ConfigurationError,
  FencekeeperError,
  OptionError,
  SinkDeniedError,
  SinkTlsError,
  ZooKeeperDeniedError,
  ZooKeeperTlsError,
} from "../../lib/errors.js";
import { fenceKeyOf } from "../../lib/redis/fence-key.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import { ERA_MAX } from "../../lib/token.js";
import { parseConnectString } from "../../lib/zookeeper/connect-string.js";
import { ZooKeeper, type ZooKeeperOptions } from "../../lib/zookeeper/zookeeper.js";
import { Check, type Finding, type Seen, Unseen } from "./finding.js";
import { judgeTokens, judgeZxid } from "./judge-tokens.js";
import { acrossServers } from "./redis/across-servers.js";
import { type FenceFacts, judgeFences } from "./redis/fences.js";
import { judgeRedis } from "./redis/judge-redis.js";
import { readFences } from "./redis/read-fences.js";
import { readRedis } from "./redis/read-redis.js";
import { openRedisReaders, type RedisReader } from "./redis/redis-reader.js";
import { judgeZooKeeper } from "./zookeeper/judge-zookeeper.js";
import { readServers, readZooKeeper } from "./zookeeper/read-zookeeper.js";
import { judgeServers } from "./zookeeper/servers.js";

export interface DiagnoseOptions {
  /** At least one of the two. */
  zookeeper?: ZooKeeperOptions | undefined;
  redis?: RedisSinkOptions | undefined;
  /** Root of the claim paths. Default `/fencekeeper`. */
  root?: string | undefined;
  /** The era that workers are given. Default 0. */
  era?: number | undefined;
  /** A result key for which the rights in Redis are looked at. Default: one that has a fence. */
  key?: string | undefined;
  /** About how many keys of Redis, and how many claim paths, to go through at most. Default 10 000. */
  scanKeys?: number | undefined;
}

const SCAN_KEYS = 10_000;

/** Asked for where no key with a fence is known. */
const KEY_OF_OURS = "fencekeeper-doctor";

const REDIS = new Check("redis", "reachable", "without Redis nothing is committed");
const ZOOKEEPER = new Check("zookeeper", "reachable", "without ZooKeeper nobody gets a claim");

/**
 * Looks at everything on which the promise rests. A server that is down is a finding, not an error; so is what we are
 * not allowed to see.
 *
 * @throws OptionError, ResultKeyError when an option cannot be used
 */
export async function diagnose(options: DiagnoseOptions): Promise<Finding[]> {
  const { zookeeper, redis, era = 0, key, scanKeys = SCAN_KEYS } = options;
  if (zookeeper === undefined && redis === undefined) {
    throw new OptionError("diagnose needs a ZooKeeper, a Redis, or both");
  }
  if (!Number.isInteger(era) || era < 0 || era > ERA_MAX) {
    throw new OptionError(`era must be a whole number from 0 to ${ERA_MAX}; it is ${era}`);
  }
  if (!Number.isInteger(scanKeys) || scanKeys < 1) {
    throw new OptionError(`scanKeys must be a whole number of 1 or more; it is ${scanKeys}`);
  }
  if (key !== undefined) fenceKeyOf(key);
  // The fences are read before ZooKeeper's current transaction: one that was made since would look like one ahead.
  const sink = redis === undefined ? skipped(REDIS) : await diagnoseRedis(redis, { key, scanKeys });
  const claims =
    zookeeper === undefined
      ? skipped(ZOOKEEPER)
      : await diagnoseZooKeeper(zookeeper, { root: options.root, scanKeys });
  return [...sink.findings, ...claims.findings, ...diagnoseBoth(sink.fences, claims.zxid, era)];
}

interface RedisHalf {
  findings: Finding[];
  fences: FenceFacts | undefined;
}

interface ZooKeeperHalf {
  findings: Finding[];
  zxid: Seen<bigint> | undefined;
}

function skipped(check: Check): RedisHalf & ZooKeeperHalf {
  const finding = check.unseen(new Unseen("no address was given"), `give --${check.about}`, "note");
  return { findings: [finding], fences: undefined, zxid: undefined };
}

async function diagnoseRedis(
  options: RedisSinkOptions,
  { key, scanKeys }: { key: string | undefined; scanKeys: number },
): Promise<RedisHalf> {
  const sink = openRedisSink(options);
  const readers = openRedisReaders(options);
  try {
    await reach(readers);
    const fences = await readFences({ readers, sink, scanKeys });
    const theirs = key ?? fences.looks.find((look) => look.key !== undefined)?.key;
    const question = { key: theirs ?? KEY_OF_OURS, keyIsTheirs: theirs !== undefined };
    const each = await Promise.all(
      readers.servers.map(async (reader) => ({
        place: reader.place,
        findings: judgeRedis(await readRedis(reader, question)),
      })),
    );
    const findings = [REDIS.well(readers.place), ...acrossServers(each), ...judgeFences(fences)];
    return { findings, fences };
  } catch (error) {
    return { findings: [faultOf(REDIS, error)], fences: undefined };
  } finally {
    await Promise.all([readers.close(), sink.close()]);
  }
}

/** A user that may not even ping is connected all the same. */
async function reach(reader: RedisReader): Promise<void> {
  try {
    await reader.read("PING");
  } catch (error) {
    if (!(error instanceof SinkDeniedError && error.message.includes("NOPERM"))) throw error;
  }
}

async function diagnoseZooKeeper(
  options: ZooKeeperOptions,
  { root, scanKeys }: { root: string | undefined; scanKeys: number },
): Promise<ZooKeeperHalf> {
  const zookeeper = new ZooKeeper(options);
  try {
    const facts = await readZooKeeper({ zookeeper, options, root, scanPaths: scanKeys });
    const reached = ZOOKEEPER.well(options.connect);
    return {
      findings: [reached, ...judgeZooKeeper(facts), ...judgeZxid(facts.zxid)],
      zxid: facts.zxid,
    };
  } catch (error) {
    const fault = faultOf(ZOOKEEPER, error);
    const { servers } = parseConnectString(options.connect);
    const each = judgeServers(await readServers(servers, zookeeper.connectTimeoutMs));
    return { findings: [fault, ...each], zxid: undefined };
  } finally {
    await zookeeper.close();
  }
}

function diagnoseBoth(
  facts: FenceFacts | undefined,
  zxid: Seen<bigint> | undefined,
  era: number,
): Finding[] {
  if (facts === undefined || zxid === undefined) return []; // the half that is missing has been told of
  return [judgeTokens({ fences: facts.looks, era, zxid })];
}

/** A server that cannot be used at all is what the doctor was asked to find. */
function faultOf(check: Check, error: unknown): Finding {
  if (!(error instanceof FencekeeperError) || error instanceof OptionError) throw error;
  const denied = error instanceof SinkDeniedError || error instanceof ZooKeeperDeniedError;
  const untrusted = error instanceof SinkTlsError || error instanceof ZooKeeperTlsError;
  const fix = denied
    ? "check user, password and rights"
    : untrusted
      ? "check the certificates on both sides, their names and how long they last"
      : error instanceof ConfigurationError
        ? "correct the address"
        : "check the address, and that a server runs there";
  return check.broken(error.message, fix);
}
