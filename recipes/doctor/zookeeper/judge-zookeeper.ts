/**
 * Judges a ZooKeeper ensemble by all that is known of it. Pure.
 */
import { Check, type Finding, type Seen } from "../finding.js";
import { type AccessLook, judgeAccess } from "./access.js";
import { type ClaimPathFacts, judgeClaimPaths } from "./claim-paths.js";
import { judgeServers, type ServerFacts } from "./servers.js";

const TIMEOUT = new Check(
  "zookeeper",
  "session-timeout",
  "another worker takes over after the granted time, not after the one that was asked for",
);

export interface ZooKeeperFacts {
  servers: ServerFacts;
  askedTimeoutMs: number;
  grantedTimeoutMs: number;
  claimPaths: Seen<ClaimPathFacts>;
  access: Seen<readonly AccessLook[]>;
  /** The ensemble's current transaction. */
  zxid: Seen<bigint>;
}

export function judgeZooKeeper(facts: ZooKeeperFacts): Finding[] {
  return [
    ...judgeServers(facts.servers),
    judgeTimeout(facts),
    judgeAccess(facts.access),
    ...judgeClaimPaths(facts.claimPaths),
  ];
}

function judgeTimeout({ askedTimeoutMs, grantedTimeoutMs }: ZooKeeperFacts): Finding {
  if (askedTimeoutMs === grantedTimeoutMs) return TIMEOUT.well(`${grantedTimeoutMs} ms`);
  return TIMEOUT.warning(
    `${grantedTimeoutMs} ms granted, ${askedTimeoutMs} ms asked for`,
    `--session-timeout ${grantedTimeoutMs}ms, or other minSessionTimeout and maxSessionTimeout in zoo.cfg`,
  );
}
