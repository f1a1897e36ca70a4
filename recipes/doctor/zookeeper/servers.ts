/**
 * Judges the ZooKeeper servers of a connection string by what each says of itself. Pure.
 */
import { Check, counted, type Finding, type Seen, Unseen } from "../finding.js";

const SERVERS = new Check(
  "zookeeper",
  "servers",
  "without a majority of its servers an ensemble gives no claims",
);
const ENSEMBLE = new Check(
  "zookeeper",
  "ensemble",
  "servers that are no ensemble together each hand out claims of their own",
);
const VERSION = new Check(
  "zookeeper",
  "version",
  "claim paths are containers, which servers before 3.5 do not have: empty paths stay for ever",
);

/** What a server said to `srvr`. */
export type ServerLook = { address: string } & (
  | { answer: "serves"; mode: string; version: string; zxid: bigint }
  /** It is up, and no part of a quorum. */
  | { answer: "waits" }
  /** It is up, and does not answer this word to everybody. */
  | { answer: "mute" }
  | { answer: "none" }
);

export interface ServerFacts {
  servers: readonly ServerLook[];
  /** How many followers are in sync with the leader, as it says; undefined where there is no leader. */
  syncedFollowers: Seen<number> | undefined;
}

const ALLOW = "4lw.commands.whitelist=srvr,mntr in zoo.cfg";

export function judgeServers(facts: ServerFacts): Finding[] {
  return [judgeAnswers(facts.servers), judgeEnsemble(facts), judgeVersions(facts.servers)];
}

function judgeAnswers(servers: readonly ServerLook[]): Finding {
  const silent = servers.filter(({ answer }) => answer === "none" || answer === "waits");
  const count = counted(servers.length, "server");
  if (silent.length > 0) {
    const words = silent.map(
      ({ address, answer }) =>
        `${address} ${answer === "waits" ? "is in no quorum" : "does not answer"}`,
    );
    const found = `${servers.length - silent.length} of ${count} up: ${words.join(", ")}`;
    const fix = "start it again, or take it out of the connection string";
    return 2 * silent.length >= servers.length
      ? SERVERS.broken(found, fix)
      : SERVERS.warning(found, fix);
  }
  if (servers.length > 1) return SERVERS.well(`${count}, all up`);
  return SERVERS.warning(
    "one server in the connection string: when it is down, nobody gets a claim",
    "run three servers, and name them all: host:2181,host:2181,host:2181",
  );
}

function judgeEnsemble({ servers, syncedFollowers }: ServerFacts): Finding {
  const serving = servers.flatMap((server) => (server.answer === "serves" ? [server] : []));
  const alone = serving.filter(({ mode }) => mode === "standalone");
  const leaders = serving.filter(({ mode }) => mode === "leader");
  const modes = serving.map(({ address, mode }) => `${address} ${mode}`).join(", ");
  const fix = "put the servers of one ensemble only into the connection string";
  if (servers.length > 1 && alone.length > 0) {
    return ENSEMBLE.broken(`${modes}: a standalone server belongs to no ensemble`, fix);
  }
  if (leaders.length > 1) return ENSEMBLE.broken(`${modes}: two leaders, two ensembles`, fix);
  if (serving.length === 0) {
    return ENSEMBLE.unseen(new Unseen("no server answered srvr"), ALLOW);
  }
  if (alone.length > 0) return ENSEMBLE.well(modes); // that it is alone has been said
  if (syncedFollowers === 0) {
    return ENSEMBLE.broken(`${modes}: no follower is in sync`, "look into the followers' logs");
  }
  if (leaders.length === 0) {
    return ENSEMBLE.note(`${modes}; the leader is not in the connection string, or was not seen`);
  }
  const synced = syncedFollowers === undefined || syncedFollowers instanceof Unseen;
  return ENSEMBLE.well(
    synced ? modes : `${modes}; ${counted(syncedFollowers, "follower")} in sync`,
  );
}

function judgeVersions(servers: readonly ServerLook[]): Finding {
  const versions = servers.flatMap((server) => (server.answer === "serves" ? server.version : []));
  if (versions.length === 0) {
    return VERSION.unseen(new Unseen("no server answered srvr"), ALLOW);
  }
  const found = [...new Set(versions)].join(", ");
  const fix = "upgrade to ZooKeeper 3.9";
  const oldest = Math.min(...versions.map(numberOf));
  if (oldest < 3_004) return VERSION.broken(`${found}: too old`, fix);
  return oldest < 3_005 ? VERSION.warning(`${found}: no containers`, fix) : VERSION.well(found);
}

/** `3.8.0` as 3008. */
function numberOf(version: string): number {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return 1_000 * major + minor;
}

/** Reads an answer to `srvr`. */
export function serverOf(address: string, text: string): ServerLook {
  const version = /^Zookeeper version: (\d+\.\d+\.\d+)/m.exec(text)?.[1];
  const mode = /^Mode: (\S+)/m.exec(text)?.[1];
  const zxid = /^Zxid: (0x[0-9a-f]+)/m.exec(text)?.[1];
  if (version !== undefined && mode !== undefined && zxid !== undefined) {
    return { address, answer: "serves", mode, version, zxid: BigInt(zxid) };
  }
  if (text.includes("not currently serving requests")) return { address, answer: "waits" };
  return { address, answer: text === "" ? "none" : "mute" };
}
