/**
 * Judges the server's role and its replicas: what a failover or a partition could undo. Pure.
 */
import { Check, counted, type Finding, Unseen } from "../finding.js";
import { type Info, infoOf, numberOf, type RedisFacts } from "./redis-facts.js";

const ROLE = new Check("redis", "role", "a replica takes no commits, and may show an old fence");
const REPLICAS = new Check(
  "redis",
  "replicas",
  "what a replica does not have yet is lost in a failover, fences included",
);
const MIN_REPLICAS = new Check(
  "redis",
  "min-replicas",
  "a primary that is cut off goes on accepting commits, which a failover then undoes",
);

/** Seconds of silence after which a replica counts as behind; Redis's own default of min-replicas-max-lag. */
const LAG_S_MAX = 10;

export interface Replica {
  place: string;
  online: boolean;
  /** Bytes of the replication stream that it has not confirmed. */
  behindBytes: number;
  /** Seconds since it was last heard of. */
  lagS: number;
}

export function judgeReplication(facts: RedisFacts): Finding[] {
  if (facts.info instanceof Unseen) {
    return [ROLE.unseen(facts.info, "allow INFO: ACL SETUSER <user> +info")];
  }
  const role = infoOf(facts, "role");
  if (role instanceof Unseen) return [ROLE.unseen(role, "look at ROLE by hand")];
  if (role === "slave") {
    const primary = `${facts.info.get("master_host")}:${facts.info.get("master_port")}`;
    return [ROLE.broken(`a replica of ${primary}`, "give the address of the primary")];
  }
  if (role !== "master") return [ROLE.broken(`it is a ${role}`, "give a Redis server")];
  return [ROLE.well("primary"), ...judgeReplicas(facts, facts.info)];
}

function judgeReplicas(facts: RedisFacts, info: Info): Finding[] {
  const replicas = replicasOf(info);
  const wanted = wantedOf(facts, info);
  const good = replicas.filter(isInSync);
  const connected = numberOf(facts, "connected_slaves") ?? replicas.length;
  if (wanted === 0 && connected === 0) {
    return [REPLICAS.note("none: the fences are as safe as this one machine and its disk")];
  }
  const behind = Math.max(0, ...replicas.map(({ behindBytes }) => behindBytes));
  const reach = `${good.length} of ${counted(connected, "replica")} in sync, at most ${behind} bytes behind`;
  const late = replicas.filter((replica) => !isInSync(replica)).map(({ place }) => place);
  const sync =
    good.length === connected
      ? REPLICAS.well(reach)
      : REPLICAS.warning(reach, `look after ${late.join(", ") || "the replicas"}`);
  return [sync, judgeWanted(wanted, good.length)];
}

function judgeWanted(wanted: number | Unseen, good: number): Finding {
  const fix = "CONFIG SET min-replicas-to-write 1, and the same in redis.conf";
  if (wanted instanceof Unseen) return MIN_REPLICAS.unseen(wanted, fix);
  if (wanted === 0) return MIN_REPLICAS.warning("min-replicas-to-write is 0", fix);
  const found = `min-replicas-to-write is ${wanted}`;
  if (good >= wanted) return MIN_REPLICAS.well(found);
  return MIN_REPLICAS.broken(
    `${found} and ${good} are there: every commit is refused`,
    "bring the replicas back, or lower min-replicas-to-write",
  );
}

/** Where `CONFIG GET` is not allowed, `INFO` counts the good replicas only if some are wanted. */
function wantedOf({ settings }: RedisFacts, info: Info): number | Unseen {
  const set = settings["min-replicas-to-write"];
  if (!(set instanceof Unseen)) return Number(set);
  return info.has("min_slaves_good_slaves") ? 1 : 0;
}

function isInSync({ online, lagS }: Replica): boolean {
  return online && lagS <= LAG_S_MAX;
}

/** Reads `slave0:ip=10.0.0.2,port=6379,state=online,offset=123,lag=0`. */
export function replicasOf(info: Info): Replica[] {
  const here = Number(info.get("master_repl_offset") ?? 0);
  return [...info]
    .filter(([name]) => /^slave\d+$/.test(name))
    .map(([, text]) => {
      const fields = new Map(text.split(",").map((part) => part.split("=", 2) as [string, string]));
      return {
        place: `${fields.get("ip")}:${fields.get("port")}`,
        online: fields.get("state") === "online",
        behindBytes: Math.max(0, here - Number(fields.get("offset") ?? 0)),
        lagS: Number(fields.get("lag") ?? 0),
      };
    });
}
