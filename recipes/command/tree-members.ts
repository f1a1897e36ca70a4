/** Which processes of a table belong to a command's tree. Pure: a table goes in, entries come out. */
import { identityOf, type ProcessEntry } from "./process-entry.js";
import { markerHas } from "./process-marker.js";

/** What is known of a tree before looking. */
export interface TreeRoot {
  /** The leader: its pid is also the id of the command's process group and session. */
  readonly pid: number;
  readonly startedAt: number;
  readonly runId: string;
  /** False once the group is known to have been empty: from then on its id may belong to strangers. */
  readonly groupOpen: boolean;
  /** Identities of processes that were found to be members before. Once a member, always a member. */
  readonly known: ReadonlySet<string>;
  /** Our own process, which is never a member, whatever its environment says. */
  readonly ownPid: number;
}

/**
 * The living members of a tree.
 *
 * A process belongs to it if it is the leader, is in the leader's group or session, carries the run's marker, was
 * found before, or is a child of a member or in the group or session that a member made. A session is only ever
 * inherited, so a session made in the tree holds nothing else.
 *
 * Not found is a process that has done all of these before anybody looked: a session of its own, a parent that has
 * ended, and an environment without the marker (`env -i`, or overwritten by a title). Only a cgroup knows of those.
 */
export function treeMembers(table: readonly ProcessEntry[], root: TreeRoot): ProcessEntry[] {
  // Whoever started before the leader is no descendant. This is also what shows that a pid was used again.
  const candidates = table.filter(
    (entry) => entry.startedAt >= root.startedAt && entry.pid !== root.ownPid,
  );
  const memberPids = new Set<number>();
  const queue = candidates.filter((entry) => isSeed(entry, root));
  for (const entry of queue) memberPids.add(entry.pid);

  const byLink = linksOf(candidates);
  for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
    for (const linked of byLink.get(entry.pid) ?? []) {
      if (memberPids.has(linked.pid)) continue;
      memberPids.add(linked.pid);
      queue.push(linked);
    }
  }
  return candidates.filter((entry) => memberPids.has(entry.pid) && entry.state !== "zombie");
}

function isSeed(entry: ProcessEntry, root: TreeRoot): boolean {
  if (entry.pid === root.pid) return entry.startedAt === root.startedAt;
  if (root.groupOpen && (entry.groupId === root.pid || entry.sessionId === root.pid)) return true;
  return markerHas(entry.marker, root.runId) || root.known.has(identityOf(entry));
}

/** Processes by the pids that make them members: parent, group leader, session leader. */
function linksOf(candidates: readonly ProcessEntry[]): Map<number, ProcessEntry[]> {
  const links = new Map<number, ProcessEntry[]>();
  for (const entry of candidates) {
    for (const pid of new Set([entry.parentPid, entry.groupId, entry.sessionId])) {
      const linked = links.get(pid);
      if (linked) linked.push(entry);
      else links.set(pid, [entry]);
    }
  }
  return links;
}
