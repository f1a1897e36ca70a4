/**
 * Judges what is in the claim paths: what blocks a queue, and what is near its end. Pure.
 */
import { SEQUENCE_MAX } from "../../../lib/token.js";
import { Check, counted, type Finding, named, type Seen, Unseen } from "../finding.js";

const PATHS = new Check("zookeeper", "claim-paths", "each is the queue of one job");
const BLOCKED = new Check(
  "zookeeper",
  "blocked-queues",
  "a persistent znode that looks like a contender never leaves: nobody behind it gets the claim",
);
const FOREIGN = new Check(
  "zookeeper",
  "foreign-znodes",
  "the path of a queue with strangers in it is never removed, nor made afresh at its counter's end",
);
const COUNTER = new Check(
  "zookeeper",
  "counters",
  "a claim path's 32-bit counter ends, and repeats its numbers there",
);
const LENGTH = new Check(
  "zookeeper",
  "queue-lengths",
  "a list of children above jute.maxbuffer (1 MiB by default) cannot be read: the whole queue stands still",
);

/** A name of ours takes about 60 bytes, so this is well below what fits into 1 MiB. */
const CHILDREN_MANY = 10_000;

export interface ClaimPathLook {
  path: string;
  contenders: number;
  /** Names of contenders that are persistent, among those that were looked at. */
  persistent: readonly string[];
  foreign: readonly string[];
  /** The numbers of its contenders that are near the counter's end. */
  nearEnd: readonly number[];
}

export interface ClaimPathFacts {
  /** The parent of the claim paths. */
  parent: string;
  looks: readonly ClaimPathLook[];
  /** Children of the parent that are no claim path: no job has such a name. */
  strange: readonly string[];
  /** How many claim paths were not looked at. */
  left: number;
}

export function judgeClaimPaths(facts: Seen<ClaimPathFacts>): Finding[] {
  if (facts instanceof Unseen) {
    return [PATHS.unseen(facts, "let our user read below the root (setAcl …:r), or give --root")];
  }
  const { looks, strange } = facts;
  return [
    judgeCount(facts),
    judgeBlocked(looks),
    judgeForeign(looks, strange, facts.parent),
    judgeCounters(looks),
    judgeLengths(looks),
  ];
}

function judgeCount({ looks, left, parent }: ClaimPathFacts): Finding {
  const found = `${counted(looks.length, "claim path")} below ${parent}`;
  if (left === 0) return PATHS.well(found);
  return PATHS.note(`${found}, and ${left} more that were not looked at`, "look further: --scan");
}

function judgeBlocked(looks: readonly ClaimPathLook[]): Finding {
  const blocking = looks.flatMap(({ path, persistent }) => persistent.map((n) => `${path}/${n}`));
  if (blocking.length === 0) return BLOCKED.well("every contender belongs to a session");
  return BLOCKED.broken(
    `${counted(blocking.length, "persistent contender")}: ${named(blocking)}`,
    "make sure that nobody stands behind it, then: zkCli.sh delete <path>",
  );
}

function judgeForeign(
  looks: readonly ClaimPathLook[],
  strange: readonly string[],
  parent: string,
): Finding {
  const found = [
    ...looks.flatMap(({ path, foreign }) => foreign.map((name) => `${path}/${name}`)),
    ...strange.map((name) => `${parent}/${name}`),
  ];
  if (found.length === 0) return FOREIGN.well("none");
  const what = `${counted(found.length, "znode")} that nobody's contender is: ${named(found)}`;
  return FOREIGN.warning(
    what,
    "move what is not ours elsewhere, or give fencekeeper a --root of its own",
  );
}

/** The recipe makes a path afresh by itself once it is empty, unless strangers keep it. */
function judgeCounters(looks: readonly ClaimPathLook[]): Finding {
  const ending = looks.filter(({ nearEnd }) => nearEnd.length > 0);
  if (ending.length === 0) return COUNTER.well("none is near its end");
  const words = ending.map(({ path, nearEnd }) => `${path} at ${Math.max(...nearEnd)}`);
  const found = `${counted(ending.length, "counter")} near ${SEQUENCE_MAX}: ${named(words)}`;
  const stuck = ending.filter(({ foreign, persistent }) => foreign.length + persistent.length > 0);
  if (stuck.length > 0) {
    return COUNTER.broken(
      `${found}; ${named(stuck.map(({ path }) => path))} cannot be made afresh`,
      "delete what is no contender there; the path is then made afresh by itself",
    );
  }
  return COUNTER.warning(
    found,
    "nothing, if workers of fencekeeper alone use it; else let it empty",
  );
}

function judgeLengths(looks: readonly ClaimPathLook[]): Finding {
  const longest = looks.reduce((most, { contenders }) => Math.max(most, contenders), 0);
  const long = looks.filter(({ contenders }) => contenders > CHILDREN_MANY);
  if (long.length === 0) return LENGTH.well(`the longest has ${counted(longest, "contender")}`);
  return LENGTH.warning(
    `${counted(longest, "contender")} in one path: ${named(long.map(({ path }) => path))}`,
    "let workers that need not wait not wait, and raise jute.maxbuffer on servers and clients",
  );
}
