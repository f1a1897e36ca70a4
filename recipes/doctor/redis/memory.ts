/**
 * Judges how Redis deals with memory: what it may evict, and how much is left. Pure.
 */
import { Check, type Finding, Unseen } from "../finding.js";
import { numberOf, type RedisFacts, settingOf } from "./redis-facts.js";

const EVICTION = new Check("redis", "eviction", "an evicted fence lets an old token in");
const MEMORY = new Check("redis", "memory", "a full Redis takes no commits");

/** Share of maxmemory from which on it is called nearly full. */
const NEARLY_FULL = 0.9;

const KEEP = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";

export function judgeMemory(facts: RedisFacts): Finding[] {
  return [judgeEviction(facts), judgeUse(facts)];
}

/** Fences have no TTL, so the `volatile-…` policies pass them over; they take results that have one too early. */
function judgeEviction(facts: RedisFacts): Finding {
  const policy = settingOf(facts, "maxmemory-policy", "maxmemory_policy");
  const limit = limitOf(facts);
  if (policy instanceof Unseen) {
    return EVICTION.unseen(policy, "make sure that maxmemory-policy is noeviction");
  }
  if (policy === "noeviction") return EVICTION.well(policy);
  if (limit instanceof Unseen) return EVICTION.broken(`${policy}; maxmemory was not seen`, KEEP);
  const found = `${policy}, maxmemory ${limit === 0 ? "not set" : bytes(limit)}`;
  if (policy.startsWith("volatile-")) {
    return EVICTION.warning(`${found}: fences without a TTL stay, results with one may go`, KEEP);
  }
  return limit === 0 ? EVICTION.warning(found, KEEP) : EVICTION.broken(found, KEEP);
}

function judgeUse(facts: RedisFacts): Finding {
  const limit = limitOf(facts);
  const used = numberOf(facts, "used_memory");
  if (limit instanceof Unseen) return MEMORY.unseen(limit, "watch used_memory yourself");
  if (limit === 0) return MEMORY.well("no limit of its own");
  if (used === undefined) {
    return MEMORY.unseen(new Unseen("INFO was not shown"), "watch used_memory yourself");
  }
  const share = (used - (numberOf(facts, "mem_not_counted_for_evict") ?? 0)) / limit;
  const found = `${Math.round(share * 100)} % of ${bytes(limit)} used`;
  const fix = "raise maxmemory, or give results a TTL (--ttl)";
  if (share >= 1) return MEMORY.broken(found, fix);
  return share >= NEARLY_FULL ? MEMORY.warning(found, fix) : MEMORY.well(found);
}

function limitOf(facts: RedisFacts) {
  const text = settingOf(facts, "maxmemory", "maxmemory");
  return text instanceof Unseen ? text : Number(text);
}

function bytes(count: number): string {
  return count < 2 ** 30
    ? `${(count / 2 ** 20).toFixed(1)} MiB`
    : `${(count / 2 ** 30).toFixed(1)} GiB`;
}
