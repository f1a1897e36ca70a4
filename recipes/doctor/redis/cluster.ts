/**
 * Judges a Redis Cluster as one of its nodes sees it. Pure.
 */
import { Check, counted, type Finding, named, type Seen, Unseen } from "../finding.js";

const STATE = new Check("redis", "cluster", "keys of a slot that nobody serves take no commits");
const COPIES = new Check(
  "redis",
  "cluster-replicas",
  "when a primary without a replica is lost, the fences of its slots are lost with it",
);

const SLOTS = 16_384;

export interface ClusterNode {
  id: string;
  place: string;
  flags: readonly string[];
  /** The node it copies; undefined for a primary. */
  primary: string | undefined;
  hasSlots: boolean;
}

export interface ClusterFacts {
  /** As `CLUSTER INFO` says, `ok` or `fail`. */
  state: string;
  slotsServed: number;
  nodes: readonly ClusterNode[];
}

export function judgeCluster(cluster: Seen<ClusterFacts> | undefined): Finding[] {
  if (cluster === undefined) return [];
  if (cluster instanceof Unseen) {
    return [STATE.unseen(cluster, "allow CLUSTER: ACL SETUSER <user> +cluster")];
  }
  const { state, slotsServed, nodes } = cluster;
  const found = `state ${state}, ${slotsServed} of ${SLOTS} slots served`;
  const whole = state === "ok" && slotsServed === SLOTS;
  const fix = "redis-cli --cluster fix <host:port>, or bring the failed nodes back";
  const alone = nodes
    .filter(({ primary, hasSlots }) => primary === undefined && hasSlots)
    .filter(({ id }) => !nodes.some((node) => node.primary === id && !isFailing(node)));
  return [
    whole ? STATE.well(found) : STATE.broken(found, fix),
    alone.length === 0
      ? COPIES.well("each primary has one")
      : COPIES.warning(
          `${counted(alone.length, "primary")} without a replica: ${named(alone.map(({ place }) => place))}`,
          "redis-cli --cluster add-node <host:port> <host:port> --cluster-slave",
        ),
  ];
}

function isFailing({ flags }: ClusterNode): boolean {
  return flags.includes("fail") || flags.includes("fail?") || flags.includes("noaddr");
}

/** Reads the replies of `CLUSTER INFO` and `CLUSTER NODES`. */
export function clusterOf(info: string, nodes: string): ClusterFacts {
  return {
    state: /^cluster_state:(\w+)/m.exec(info)?.[1] ?? "unknown",
    slotsServed: Number(/^cluster_slots_ok:(\d+)/m.exec(info)?.[1] ?? 0),
    nodes: nodes.split(/\r?\n/).flatMap((line) => nodeOf(line) ?? []),
  };
}

/** `<id> <ip:port@busport> <flags> <primary> <ping> <pong> <epoch> <link> <slot> …` */
function nodeOf(line: string): ClusterNode | undefined {
  const [id, place, flags, primary, , , , , slot] = line.split(" ");
  if (id === undefined || place === undefined || flags === undefined) return undefined;
  return {
    id,
    place: place.replace(/@.*$/, ""),
    flags: flags.split(","),
    primary: primary === undefined || primary === "-" ? undefined : primary,
    hasSlots: slot !== undefined && !slot.startsWith("["),
  };
}
