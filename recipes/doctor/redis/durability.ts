/**
 * Judges what of the fences is there again after Redis was restarted. Pure.
 */
import { Check, type Finding, Unseen } from "../finding.js";
import { infoOf, type RedisFacts, settingOf } from "./redis-facts.js";

const PERSISTENCE = new Check("redis", "persistence", "a restart forgets every fence not on disk");
const FSYNC = new Check(
  "redis",
  "appendfsync",
  "after a power failure, the fences that were not on disk are gone, and a late writer gets in",
);
const WRITES = new Check(
  "redis",
  "disk-writes",
  "when the disk fails, Redis refuses commits or keeps fences in memory only",
);

const APPEND = "CONFIG SET appendonly yes, and the same in redis.conf";

export function judgeDurability(facts: RedisFacts): Finding[] {
  const appends = appendsOf(facts);
  return [judgePersistence(facts, appends), ...judgeFsync(facts, appends), judgeWrites(facts)];
}

/** Whether there is an append-only file; `INFO` says 1 and 0. */
function appendsOf(facts: RedisFacts): boolean | Unseen {
  const text = settingOf(facts, "appendonly", "aof_enabled");
  return text instanceof Unseen ? text : text === "yes" || text === "1";
}

/** Without any persistence the next restart breaks the promise for certain, so it is broken now. */
function judgePersistence(facts: RedisFacts, appends: boolean | Unseen): Finding {
  const { save } = facts.settings;
  if (appends instanceof Unseen) {
    return PERSISTENCE.unseen(appends, "make sure that the server has appendonly yes");
  }
  if (appends) return PERSISTENCE.well("append-only file");
  if (save instanceof Unseen) {
    const reason = `no append-only file, and whether there are snapshots is not shown (${save.reason})`;
    return PERSISTENCE.unseen(new Unseen(reason), "turn the append-only file on (appendonly yes)");
  }
  if (save === "") return PERSISTENCE.broken("none: no append-only file, no snapshots", APPEND);
  return PERSISTENCE.warning(`snapshots only (save ${save}): the last minutes are lost`, APPEND);
}

function judgeFsync(facts: RedisFacts, appends: boolean | Unseen): Finding[] {
  const { appendfsync } = facts.settings;
  if (appends !== true) return [];
  if (appendfsync instanceof Unseen) {
    return [FSYNC.unseen(appendfsync, "make sure that the server has appendfsync always")];
  }
  if (appendfsync === "always") return [FSYNC.well("always: on disk before the answer")];
  const lost = appendfsync === "everysec" ? "the last second" : "what the system had not written";
  const fix = "CONFIG SET appendfsync always, and the same in redis.conf, if no loss is allowed";
  return [FSYNC.warning(`${appendfsync}: ${lost} may be lost`, fix)];
}

function judgeWrites(facts: RedisFacts): Finding {
  if (facts.info instanceof Unseen) return WRITES.unseen(facts.info, "look into the server's log");
  const appends = appendsOf(facts) === true;
  const failed = (name: string) => infoOf(facts, name) === "err";
  const fix = "free disk space, or repair the disk; the server's log has the reason";
  if (appends && failed("aof_last_write_status")) {
    return WRITES.broken("the last write of the append-only file failed", fix);
  }
  if (failed("rdb_last_bgsave_status")) {
    const found = "the last snapshot failed";
    return appends ? WRITES.warning(found, fix) : WRITES.broken(found, fix);
  }
  if (appends && failed("aof_last_bgrewrite_status")) {
    return WRITES.warning("the last rewrite of the append-only file failed", fix);
  }
  return WRITES.well("none has failed");
}
