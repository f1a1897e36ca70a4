/**
 * Judges the fences against the ensemble that makes the tokens: a fence above all that it can make refuses everybody.
 * Pure.
 */
import { parseToken } from "../../lib/token.js";
import { Check, counted, type Finding, named, type Seen, Unseen } from "./finding.js";
import type { FenceLook } from "./redis/fences.js";

const AHEAD = new Check(
  "both",
  "fence-ahead",
  "a fence above all tokens of this ensemble refuses every commit as stale",
);
const GENERATION = new Check(
  "zookeeper",
  "zxid",
  "generations above 2^53 - 1 do not arrive exactly from the client, and are refused",
);

export interface TokenFacts {
  fences: readonly FenceLook[];
  /** The era that workers are given. */
  era: number;
  /** The ensemble's current transaction, read after the fences. */
  zxid: Seen<bigint>;
}

export function judgeTokens({ fences, era, zxid }: TokenFacts): Finding {
  if (zxid instanceof Unseen) {
    return AHEAD.unseen(zxid, "4lw.commands.whitelist=srvr,mntr in zoo.cfg");
  }
  const tokens = fences.flatMap(({ fenceKey, tokenText }) =>
    tokenText === undefined ? [] : { fenceKey, token: parseToken(tokenText) },
  );
  const names = (ahead: typeof tokens) => named(ahead.map(({ fenceKey }) => fenceKey));
  const later = tokens.filter(({ token }) => token.era > era);
  if (later.length > 0) {
    const newest = Math.max(...later.map(({ token }) => token.era));
    const found = `${counted(later.length, "fence")} of a later era than ${era}: ${names(later)}`;
    return AHEAD.broken(found, `--era ${newest} for every worker, and here`);
  }
  const ahead = tokens.filter(({ token }) => token.era === era && token.generation > zxid);
  if (ahead.length > 0) {
    return AHEAD.broken(
      `${counted(ahead.length, "fence")} above ZooKeeper's current transaction ${zxid}, which was rebuilt ` +
        `or is another ensemble: ${names(ahead)}`,
      `--era ${era + 1} for every worker`,
    );
  }
  return AHEAD.well(`${counted(tokens.length, "fence")} compared with transaction ${zxid}`);
}

export function judgeZxid(zxid: Seen<bigint>): Finding[] {
  if (zxid instanceof Unseen) return []; // said once, where it matters
  if (zxid <= BigInt(Number.MAX_SAFE_INTEGER)) return [GENERATION.well(String(zxid))];
  const found = `${zxid}: above 2^53 - 1`;
  return [GENERATION.broken(found, "rebuild the ensemble, and raise --era by one everywhere")];
}
