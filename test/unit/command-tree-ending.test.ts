import { describe, expect, it } from "vitest";
import type { Clock } from "../../lib/clock.js";
import type { Delivery, ProcessEntry, ProcessSystem } from "../../recipes/command/process-entry.js";
import { ProcessTree } from "../../recipes/command/process-tree.js";
import { CommandNotStoppedError, TreeEnding } from "../../recipes/command/tree-ending.js";

const LEADER = 100;
const TERM_10S = { signal: "SIGTERM" as const, graceMs: 10_000 };

/** What a process does with a signal: by default it dies of it. */
type Reaction = (signal: NodeJS.Signals, world: World) => "dies" | "lives" | "refused";

/** A machine with virtual time: processes, their reactions, and a list of what was sent to whom. */
class World implements ProcessSystem, Clock {
  time = 0;
  looks = 0;
  table: (ProcessEntry & { reaction: Reaction })[] = [];
  readonly sent: string[] = [];
  /** Called before each look, with its number. */
  onLook: (look: number) => void = () => {};

  add(pid: number, entry: Partial<ProcessEntry> = {}, reaction: Reaction = () => "dies"): void {
    this.table.push({
      pid,
      parentPid: LEADER,
      groupId: LEADER,
      sessionId: LEADER,
      startedAt: pid,
      state: "running",
      marker: undefined,
      ...entry,
      reaction,
    });
  }

  listProcesses(): ProcessEntry[] {
    this.looks += 1;
    this.onLook(this.looks);
    return this.table.map(({ reaction: _, ...entry }) => entry);
  }

  startedAt(pid: number): number | undefined {
    return this.table.find((entry) => entry.pid === pid)?.startedAt;
  }

  kill(pid: number, signal: NodeJS.Signals): Delivery {
    this.sent.push(`${signal} ${pid}`);
    const targets = this.table.filter((e) => (pid < 0 ? e.groupId === -pid : e.pid === pid));
    if (targets.length === 0) return "gone";
    const outcomes = targets.map((target) => {
      const outcome = signal === "SIGKILL" ? killed(target, this) : target.reaction(signal, this);
      if (outcome === "dies") this.table = this.table.filter((entry) => entry !== target);
      return outcome;
    });
    return outcomes.every((outcome) => outcome === "refused") ? "refused" : "sent";
  }

  wallMs = () => 0;

  nowMs(): number {
    return this.time;
  }

  after(delayMs: number, callback: () => void): () => void {
    queueMicrotask(() => {
      this.time += delayMs;
      callback();
    });
    return () => {};
  }
}

function killed(target: World["table"][number], world: World): "dies" | "refused" {
  return target.reaction("SIGKILL", world) === "refused" ? "refused" : "dies";
}

function treeIn(world: World): ProcessTree {
  return new ProcessTree({ system: world, leaderPid: LEADER, leaderStartedAt: LEADER, runId: "r" });
}

function endingIn(world: World): TreeEnding {
  return new TreeEnding(treeIn(world), world);
}

const lives: Reaction = () => "lives";

describe("ending a tree", () => {
  it("asks the group in one step and those outside of it one by one, and needs no KILL if they obey", async () => {
    const world = new World();
    world.add(LEADER);
    world.add(101);
    world.add(102, { groupId: 102, sessionId: 102, marker: "r", parentPid: 1 });
    await endingIn(world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGTERM 102"]);
    expect(world.table).toEqual([]);
  });

  it("kills who is left when the grace is over, not before", async () => {
    const world = new World();
    world.add(LEADER, {}, (_signal, { time }) => {
      expect([0, 10_000]).toContain(time);
      return "lives";
    });
    await endingIn(world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
  });

  it("kills at once without a grace", async () => {
    const world = new World();
    world.add(LEADER, {}, lives);
    await endingIn(world).end({ signal: "SIGTERM", graceMs: 0 });
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
    expect(world.time).toBeLessThan(100);
  });

  it("measures the grace on the clock, also when we were stopped ourselves in the middle of it", async () => {
    const world = new World();
    world.add(LEADER, {}, lives);
    world.onLook = (look) => {
      if (look === 4) world.time += 3_600_000;
    };
    await endingIn(world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
    expect(world.looks).toBeLessThan(10);
  });

  it("may be hurried by a second request, but not slowed down, and asks nobody twice", async () => {
    const world = new World();
    world.add(LEADER, {}, lives);
    const ending = endingIn(world);
    await Promise.all([
      ending.end(TERM_10S),
      ending.end({ signal: "SIGTERM", graceMs: 1_000 }),
      ending.end({ signal: "SIGTERM", graceMs: 60_000 }),
    ]);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
    expect(world.time).toBeLessThan(2_000);
  });

  it("continues a stopped process after TERM, also one that stops later, so that it can act on it", async () => {
    const world = new World();
    const acts: Reaction = (signal) => (signal === "SIGCONT" ? "dies" : "lives");
    world.add(LEADER, { state: "stopped" }, acts);
    world.add(101, {}, acts);
    world.onLook = (look) => {
      if (look === 3) world.table = world.table.map((e) => ({ ...e, state: "stopped" }));
    };
    await endingIn(world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGCONT 100", "SIGCONT 101"]);
  });

  it("leaves alone what a trap starts to clean up, until the grace is over", async () => {
    const world = new World();
    world.add(LEADER, {}, (signal, { table }) => {
      if (signal === "SIGTERM" && !table.some(({ pid }) => pid === 150)) world.add(150, {}, lives);
      return "lives";
    });
    await endingIn(world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
  });

  it("kills again until nobody is left, however many are forked between look and signal", async () => {
    const world = new World();
    const daemon = { groupId: 1, sessionId: 1, marker: "r" };
    let forks = 5;
    const forking: Reaction = () => {
      forks -= 1;
      if (forks >= 0) world.add(300 - forks, daemon, forking);
      return "dies";
    };
    world.add(200, daemon, forking);
    await endingIn(world).end({ signal: "SIGTERM", graceMs: 0 });
    expect(world.table).toEqual([]);
    expect(world.sent.filter((line) => line.startsWith("SIGKILL")).length).toBeGreaterThan(1);
  });

  it("does not take one empty look for the end: a fork may have hidden from it", async () => {
    const world = new World();
    world.onLook = (look) => {
      if (look === 3) world.add(101, {}, lives); // the first look is for TERM, the second finds nobody
    };
    await endingIn(world).end({ signal: "SIGTERM", graceMs: 0 });
    expect(world.table).toEqual([]);
    expect(world.sent).toEqual(["SIGKILL -100"]);
  });

  it("never signals a stranger that got a pid between look and signal", async () => {
    const world = new World();
    world.add(101, { groupId: 101, sessionId: 101, marker: "r" });
    const table = world.listProcesses();
    world.table = [];
    world.add(101, { startedAt: 999, parentPid: 1, groupId: 101, sessionId: 101 });
    treeIn(world).kill(table);
    expect(world.sent).toEqual([]);
  });

  it("never signals a stranger's group that got the command's old id", async () => {
    const world = new World();
    const tree = treeIn(world);
    await new TreeEnding(tree, world).end(TERM_10S);
    world.add(999, { parentPid: 1 }); // the stranger that made the group has ended already
    tree.signalGroup("SIGINT");
    tree.ask("SIGTERM");
    expect(world.sent).toEqual([]);
  });

  it("never signals the group of a stranger that got the leader's pid while the tree was still there", async () => {
    const world = new World();
    world.add(101, { groupId: 101, sessionId: 101, marker: "r" });
    world.add(LEADER, { startedAt: 999, parentPid: 1 });
    world.add(1_001, { parentPid: 1 });
    const tree = treeIn(world);
    tree.signalGroup("SIGINT");
    await new TreeEnding(tree, world).end(TERM_10S);
    expect(world.sent).toEqual(["SIGTERM 101"]);
  });

  it("says which processes run as another user and cannot be ended", async () => {
    const world = new World();
    world.add(101, {}, () => "refused");
    world.add(102, { groupId: 102 }, lives);
    const failure = await endingIn(world)
      .end(TERM_10S)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CommandNotStoppedError);
    expect(failure).toMatchObject({ pids: [101], code: "COMMAND_NOT_STOPPED" });
    expect(world.table.map(({ pid }) => pid)).toEqual([101]);
  });

  it("kills the group and fails when the processes can no longer be listed", async () => {
    const world = new World();
    world.add(LEADER, {}, lives);
    world.onLook = (look) => {
      if (look === 2) throw new Error("EMFILE");
    };
    await expect(endingIn(world).end(TERM_10S)).rejects.toThrow("EMFILE");
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
  });
});

describe("after the command's own end", () => {
  it("who ends by itself within the settling time is not signalled and not counted", async () => {
    const world = new World();
    world.add(101, { parentPid: 1 });
    world.onLook = (look) => {
      if (look === 3) world.table = [];
    };
    expect(await endingIn(world).endLeftovers(250, TERM_10S)).toBe(0);
    expect(world.sent).toEqual([]);
  });

  it("who is left then is counted, asked, and killed after the grace", async () => {
    const world = new World();
    world.add(101, { parentPid: 1 }, lives);
    world.add(102, { parentPid: 1, groupId: 102 });
    expect(await endingIn(world).endLeftovers(250, TERM_10S)).toBe(2);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGTERM 102", "SIGKILL -100"]);
    expect(world.time).toBeGreaterThanOrEqual(10_250);
  });

  it("who is being ended already is not counted as left over", async () => {
    const world = new World();
    world.add(101, { parentPid: 1 }, lives);
    const ending = endingIn(world);
    const [, left] = await Promise.all([
      ending.end(TERM_10S),
      ending.endLeftovers(250, { signal: "SIGTERM", graceMs: 20_000 }),
    ]);
    expect(left).toBe(0);
    expect(world.sent).toEqual(["SIGTERM -100", "SIGKILL -100"]);
  });
});
