/**
 * Judges one Redis server by all that is known of it, without its keys. Pure.
 */
import { Check, type Finding, Unseen } from "../finding.js";
import { judgeCluster } from "./cluster.js";
import { judgeDurability } from "./durability.js";
import { judgeMemory } from "./memory.js";
import { infoOf, type RedisFacts } from "./redis-facts.js";
import { judgeReplication } from "./replication.js";
import { judgeRights } from "./rights.js";

const VERSION = new Check("redis", "version", "the scripts are tested on 6.2 and later");
const CLOCK = new Check(
  "redis",
  "clock",
  "the age of a result (--max-age) is counted by the clock of Redis alone, no token is",
);

const OLDEST = [6, 2] as const;

/** Clocks closer than this are well, in milliseconds: nothing that we do needs better. */
const SKEW_MS_MAX = 120_000;

export function judgeRedis(facts: RedisFacts): Finding[] {
  return [
    judgeVersion(facts),
    ...judgeReplication(facts),
    ...judgeMemory(facts),
    ...judgeDurability(facts),
    ...judgeCluster(facts.cluster),
    judgeRights(facts.rights),
    judgeClock(facts),
  ];
}

function judgeVersion(facts: RedisFacts): Finding {
  const version = infoOf(facts, "redis_version");
  if (version instanceof Unseen) {
    return VERSION.unseen(version, "allow INFO: ACL SETUSER <user> +info");
  }
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const tooOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return tooOld ? VERSION.broken(version, "upgrade to Redis 7") : VERSION.well(version);
}

function judgeClock({ clockAheadMs }: RedisFacts): Finding {
  if (clockAheadMs instanceof Unseen) {
    return CLOCK.unseen(clockAheadMs, "allow TIME: ACL SETUSER <user> +time", "note");
  }
  const seconds = Math.round(Math.abs(clockAheadMs) / 1_000);
  if (seconds === 0) return CLOCK.well("as the clock here");
  const found = `${seconds} s ${clockAheadMs > 0 ? "ahead of" : "behind"} the clock here`;
  if (Math.abs(clockAheadMs) <= SKEW_MS_MAX) return CLOCK.well(found);
  return CLOCK.note(found, "let both machines follow the same time servers (NTP)");
}
