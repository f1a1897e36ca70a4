/**
 * Judges the fences that are in Redis: their form, their TTL, and whether the results are still those that were
 * committed. Pure.
 */
import { Check, counted, type Finding, named, type Seen, Unseen } from "../finding.js";

const LOOKED = new Check("redis", "fences", "each fence is what keeps late writers of its key out");
const CORRUPT = new Check(
  "redis",
  "fence-form",
  "every commit to the key of such a fence is refused",
);
const TTL = new Check("redis", "fence-ttl", "an expired fence lets an old token in");
const DIGEST = new Check(
  "redis",
  "results",
  "a result that is not the committed one was written past its fence",
);

/** What was seen of one fence. */
export interface FenceLook {
  fenceKey: string;
  /** Undefined for a key that begins like a fence and belongs to no result key. */
  key: string | undefined;
  /** Canonical text of the token; undefined when the fence is not in its form. */
  tokenText: string | undefined;
  /** What is wrong with the fence or the type of the result. */
  fault: string | undefined;
  /** Milliseconds; undefined for one that does not expire. */
  ttlMs: number | undefined;
  resultTtlMs: number | undefined;
  /** Whether the value is the committed one; undefined when there is none, or it was not compared. */
  matches: boolean | undefined;
}

export interface FenceFacts {
  looks: readonly FenceLook[];
  /** About how many keys of the database were gone through. */
  scanned: number;
  /** How many there are. */
  keys: Seen<number>;
  /** Why the rest was not gone through; undefined when there is no rest. */
  stopped: string | undefined;
  /** Results that were too large to be compared. */
  large: number;
  /** Fences that we were not shown, and why; they are not among the looks. */
  hidden: { count: number; reason: string };
}

/** A fence with a TTL below this is hardly meant to outlive every worker, in milliseconds: one day. */
const RETENTION_MS_MIN = 86_400_000;

export function judgeFences(facts: FenceFacts): Finding[] {
  const { looks, hidden, stopped } = facts;
  if (facts.scanned === 0 && stopped !== undefined) return blind(new Unseen(stopped));
  if (looks.length === 0 && hidden.count > 0) return blind(new Unseen(hidden.reason));
  const ours = looks.filter(({ key }) => key !== undefined);
  return [judgeScan(facts, ours.length), judgeForm(facts), judgeTtl(ours), judgeDigests(facts)];
}

/** The warning is given once. */
function blind(why: Unseen): Finding[] {
  const others = [CORRUPT, TTL, DIGEST].map((check) => check.unseen(why, READ, "note"));
  return [LOOKED.unseen(why, READ), ...others];
}

const READ = "ACL SETUSER <user> +scan +dbsize +pttl +strlen +hget +eval +evalsha ~fence:* ~<keys>";

function judgeScan(facts: FenceFacts, count: number): Finding {
  const { scanned, keys, stopped, hidden } = facts;
  if (hidden.count > 0) {
    const reason = `${hidden.count} of ${hidden.count + count} fences: ${hidden.reason}`;
    return LOOKED.unseen(new Unseen(reason), READ);
  }
  if (stopped === undefined) return LOOKED.well(`${counted(count, "fence")}, all looked at`);
  const all = keys instanceof Unseen ? "an unknown number of" : `about ${keys}`;
  const found = `${counted(count, "fence")} in ${scanned} of ${all} keys; ${stopped}`;
  const far = keys instanceof Unseen ? 10 * scanned : 2 * keys;
  return LOOKED.note(found, `look further: --scan ${far}`);
}

function judgeForm({ looks }: FenceFacts): Finding {
  const corrupt = looks.filter(({ fault }) => fault !== undefined);
  const strange = looks.filter(({ key }) => key === undefined).map(({ fenceKey }) => fenceKey);
  if (corrupt.length > 0) {
    const reason = corrupt[0]?.fault ?? "";
    return CORRUPT.broken(
      `${counted(corrupt.length, "fence")} not to be used: ${names(corrupt)} (${reason})`,
      "find out who writes there; then delete the fence while no worker of its job runs",
    );
  }
  if (strange.length > 0) {
    const found = `${counted(strange.length, "key")} that look like fences and are none: ${named(strange)}`;
    return CORRUPT.note(found, "keep fence:* for fences: rename these keys");
  }
  return CORRUPT.well("all in their form");
}

/** A retention longer than any worker's life is a choice; a fence that goes before its result is a hole. */
function judgeTtl(fences: readonly FenceLook[]): Finding {
  const expiring = fences.filter(({ ttlMs }) => ttlMs !== undefined);
  const fix = "PERSIST <fence>, and find out who runs EXPIRE on fence:*";
  const early = expiring.filter(
    ({ ttlMs = 0, resultTtlMs, matches }) =>
      matches !== undefined && ttlMs < (resultTtlMs ?? Number.POSITIVE_INFINITY),
  );
  if (early.length > 0) {
    const found = `${counted(early.length, "fence")} that will expire before the result: ${names(early)}`;
    return TTL.broken(found, fix);
  }
  const short = expiring.filter(({ ttlMs = 0 }) => ttlMs < RETENTION_MS_MIN);
  if (short.length > 0) {
    const found = `${counted(short.length, "fence")} that will expire within a day: ${names(short)}`;
    return TTL.warning(found, fix);
  }
  if (expiring.length === 0) return TTL.well("no fence expires");
  return TTL.note(
    `${counted(expiring.length, "fence")} that will expire, the first not within a day: ${names(expiring)}`,
    "make sure that no worker lives so long",
  );
}

function judgeDigests({ looks, large }: FenceFacts): Finding {
  const other = looks.filter(({ matches }) => matches === false);
  if (other.length > 0) {
    const keys = named(other.map(({ key = "" }) => key));
    return DIGEST.broken(
      `${counted(other.length, "result")} that nobody committed: ${keys}`,
      "find the writer that uses SET or DEL on these keys, and let it commit (fencekeeper commit)",
    );
  }
  const compared = looks.filter(({ matches }) => matches === true).length;
  if (large === 0) return DIGEST.well(`${compared} compared, all as committed`);
  const reason = `${counted(large, "result")} too large to be compared here`;
  return DIGEST.unseen(
    new Unseen(reason),
    "fencekeeper get <key> compares one of any size",
    "note",
  );
}

function names(fences: readonly FenceLook[]): string {
  return named(fences.map(({ fenceKey }) => fenceKey));
}
