/**
 * The options that every command shares, and what is opened with them.
 */
import { type Command, Option } from "commander";
import { OptionError } from "../../lib/errors.js";
import { FencePolicy } from "../../lib/redis/fence-policy.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import type { Sink } from "../../lib/sink.js";
import { ERA_MAX } from "../../lib/token.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { parseDurationMs } from "./duration.js";
import { addRedisOptions, type RedisFlags, redisOf } from "./redis-options.js";
import { Report } from "./report.js";
import { addZooKeeperOptions, securityOf, type ZooKeeperFlags } from "./zookeeper-options.js";

/** As commander gives them. */
export interface CommonFlags extends ZooKeeperFlags, RedisFlags {
  zookeeper?: string;
  sessionTimeout: string;
  connectTimeout: string;
  root?: string;
  era: string;
  json?: true;
  quiet?: true;
}

/** Tells a command under `run` where the claim is. */
export const ROOT_VARIABLE = "FENCEKEEPER_ROOT";

export function addCommonOptions(command: Command): Command {
  command
    .addOption(
      new Option("--zookeeper <hosts>", "ZooKeeper servers, host:port,host:port/chroot").env(
        "ZOOKEEPER_CONNECT",
      ),
    )
    .option("--session-timeout <duration>", "session timeout to ask ZooKeeper for", "10s")
    .option("--connect-timeout <duration>", "how long to wait for a server to answer", "5s")
    .addOption(
      new Option("--root <path>", "root of the claim paths in ZooKeeper")
        .default("/fencekeeper")
        .env(ROOT_VARIABLE),
    )
    .option("--era <number>", "raised when a ZooKeeper ensemble is rebuilt", "0")
    .option("--json", "for programs: JSON instead of text")
    .option("--quiet", "say nothing but errors and results");
  return addZooKeeperOptions(addRedisOptions(command));
}

export function reportOf(flags: CommonFlags): Report {
  return new Report({ json: flags.json === true, quiet: flags.quiet === true });
}

/** @throws OptionError when there is no address, or an option cannot be used */
export function zookeeperOf(flags: CommonFlags, report: Report): ZooKeeper {
  if (flags.zookeeper === undefined || flags.zookeeper === "") {
    throw new OptionError("which ZooKeeper? Give --zookeeper host:port, or set ZOOKEEPER_CONNECT");
  }
  return new ZooKeeper({
    connect: flags.zookeeper,
    sessionTimeoutMs: parseDurationMs(flags.sessionTimeout, "--session-timeout"),
    connectTimeoutMs: connectTimeoutMsOf(flags),
    ...securityOf(flags),
    warn: report.warn,
  });
}

/** @throws OptionError when there is no address, or an option cannot be used */
export function sinkOf(flags: CommonFlags): Sink {
  const policy = new FencePolicy({ default: flags.observe ? "observe" : "enforce" });
  return openRedisSink({ ...redisOf(flags), policy, timeoutMs: connectTimeoutMsOf(flags) });
}

export function connectTimeoutMsOf(flags: CommonFlags): number {
  return parseDurationMs(flags.connectTimeout, "--connect-timeout");
}

/** @throws OptionError when the era is not a whole number in its range */
export function eraOf(flags: CommonFlags): number {
  const era = /^\d{1,5}$/.test(flags.era) ? Number(flags.era) : Number.NaN;
  if (!(era <= ERA_MAX)) {
    throw new OptionError(`--era takes a whole number from 0 to ${ERA_MAX}; it is ${flags.era}`);
  }
  return era;
}
