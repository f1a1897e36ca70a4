import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { identityOf, type ProcessEntry } from "../../recipes/command/process-entry.js";
import { type TreeRoot, treeMembers } from "../../recipes/command/tree-members.js";

const RUN = "11111111-aaaa";
const OWN_PID = 50;
const ROOT: TreeRoot = {
  pid: 100,
  startedAt: 1_000,
  runId: RUN,
  groupOpen: true,
  known: new Set(),
  ownPid: OWN_PID,
};

/** A stranger in a session of its own, unless told otherwise. */
function entry(pid: number, changes: Partial<ProcessEntry> = {}): ProcessEntry {
  const defaults = { parentPid: 1, groupId: pid, sessionId: pid, startedAt: 1_000 + pid };
  return { pid, ...defaults, state: "running", marker: undefined, ...changes };
}

const LEADER = entry(100, { parentPid: OWN_PID, startedAt: 1_000, marker: RUN });
const IN_GROUP = { groupId: 100, sessionId: 100 };

describe("the members of a command's tree", () => {
  const cases: {
    title: string;
    table: ProcessEntry[];
    root?: Partial<TreeRoot>;
    pids: number[];
  }[] = [
    { title: "are the leader alone when it has started nothing", table: [LEADER], pids: [100] },
    {
      title: "are nobody when the leader and all others are gone",
      table: [entry(1), entry(7)],
      pids: [],
    },
    {
      title: "include children and grandchildren",
      table: [LEADER, entry(101, { parentPid: 100 }), entry(102, { parentPid: 101 })],
      pids: [100, 101, 102],
    },
    {
      title: "include who is in the group although its parent and its environment are gone",
      table: [entry(105, IN_GROUP)],
      pids: [105],
    },
    {
      title: "include who made a group of its own in the command's session",
      table: [entry(105, { sessionId: 100 })],
      pids: [105],
    },
    {
      title: "include a daemon found by its marker alone",
      table: [entry(106, { marker: RUN })],
      pids: [106],
    },
    {
      title: "include a daemon of a run inside this run",
      table: [entry(106, { marker: `${RUN}:22222222-bbbb` })],
      pids: [106],
    },
    {
      title: "include the session that a daemon made, without the marker",
      table: [entry(106, { marker: RUN }), entry(107, { sessionId: 106 })],
      pids: [106, 107],
    },
    {
      title: "include who was found before and has lost every other sign since",
      table: [entry(108)],
      root: { known: new Set([identityOf(entry(108))]) },
      pids: [108],
    },
    {
      title: "include stopped processes",
      table: [entry(105, { ...IN_GROUP, state: "stopped" })],
      pids: [105],
    },
    {
      title: "leave zombies out, but not what hangs on them",
      table: [{ ...LEADER, state: "zombie" }, entry(105, { parentPid: 100 })],
      pids: [105],
    },
    {
      title: "leave out a stranger that got the leader's pid",
      table: [entry(100, { startedAt: 9_000 }), entry(109, { parentPid: 100 })],
      root: { groupOpen: false },
      pids: [],
    },
    {
      title: "leave out a stranger that got the pid of a former member",
      table: [entry(108, { startedAt: 9_000 })],
      root: { known: new Set([identityOf(entry(108))]) },
      pids: [],
    },
    {
      title: "leave out who took the group's id after the group was empty",
      table: [entry(109, IN_GROUP)],
      root: { groupOpen: false },
      pids: [],
    },
    {
      title: "leave out who started before the leader, whatever its marker says",
      table: [LEADER, entry(20, { startedAt: 999, marker: RUN })],
      pids: [100],
    },
    {
      title: "leave out our own process and its other children",
      table: [LEADER, entry(OWN_PID, { marker: RUN }), entry(110, { parentPid: OWN_PID })],
      pids: [100],
    },
    {
      title: "leave out another run, also when its id begins alike",
      table: [LEADER, entry(111, { marker: `${RUN}0` }), entry(112, { marker: "22222222-bbbb" })],
      pids: [100],
    },
    {
      title: "leave out processes that a container shows without group and session",
      table: [LEADER, entry(113, { parentPid: 0, groupId: 0, sessionId: 0 })],
      pids: [100],
    },
  ];
  it.each(cases)("$title", ({ table, root, pids }) => {
    const found = treeMembers(table, { ...ROOT, ...root });
    expect(found.map(({ pid }) => pid).sort((a, b) => a - b)).toEqual(pids);
  });
});

/** A process of the simulation; `ours` is the truth that the table does not show. */
interface Simulated extends ProcessEntry {
  ours: boolean;
}

type Step = { who: number; what: "fork" | "setsid" | "setpgid" | "cleanenv" | "exit" };

const steps = fc.array(
  fc.record({
    who: fc.nat(30),
    what: fc.constantFrom("fork", "fork", "setsid", "setpgid", "cleanenv", "exit") as fc.Arbitrary<
      Step["what"]
    >,
  }),
  { maxLength: 60 },
);

/** Lets the leader and a stranger live through the steps, in a world with an init process and our own. */
function simulate(list: readonly Step[]): Simulated[] {
  const stranger = { ...entry(60, { startedAt: 1_000 }), ours: false };
  let world: Simulated[] = [{ ...LEADER, ours: true }, stranger];
  let pid = 200;
  for (const { who, what } of list) {
    const index = who % Math.max(1, world.length);
    const actor = world[index];
    if (!actor) break;
    if (what === "fork") {
      pid += 1;
      world.push({ ...actor, pid, parentPid: actor.pid, startedAt: 1_000 + pid });
    } else if (what === "exit") {
      world = world.filter((other) => other !== actor);
      world = world.map((o) => (o.parentPid === actor.pid ? { ...o, parentPid: 1 } : o));
    } else {
      world[index] = { ...actor, ...changed(actor, what) };
    }
  }
  return world;
}

function changed(actor: Simulated, what: Step["what"]): Partial<Simulated> {
  if (what === "setsid") return { sessionId: actor.pid, groupId: actor.pid };
  if (what === "setpgid") return { groupId: actor.pid };
  return { marker: undefined };
}

describe("in any world of forks, sessions, groups, cleared environments and exits", () => {
  it("no stranger is ever taken for a member", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const world = simulate(list);
        const found = new Set(treeMembers(world, ROOT).map(({ pid }) => pid));
        expect(world.filter(({ pid, ours }) => found.has(pid) && !ours)).toEqual([]);
      }),
    );
  });

  it("everybody with the marker, in the session, or with a member as parent is found", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const world = simulate(list);
        const found = new Set(treeMembers(world, ROOT).map(({ pid }) => pid));
        const missed = world.filter(
          (one) =>
            one.ours &&
            !found.has(one.pid) &&
            (one.marker === RUN || one.sessionId === ROOT.pid || found.has(one.parentPid)),
        );
        expect(missed).toEqual([]);
      }),
    );
  });

  it("the order of the table does not matter", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const world = simulate(list);
        const pids = (table: ProcessEntry[]) =>
          treeMembers(table, ROOT)
            .map(({ pid }) => pid)
            .sort((a, b) => a - b);
        expect(pids([...world].reverse())).toEqual(pids(world));
      }),
    );
  });
});
