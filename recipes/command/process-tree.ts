/** A command's processes: finds them, and signals them without ever hitting a stranger. */
import {
  type Delivery,
  identityOf,
  type ProcessEntry,
  type ProcessSystem,
} from "./process-entry.js";
import { treeMembers } from "./tree-members.js";

export interface ProcessTreeOptions {
  system: ProcessSystem;
  /** Pid of the command itself, which leads a process group and a session of its own. */
  leaderPid: number;
  leaderStartedAt: number;
  /** Value in the marker variable of the command's environment. */
  runId: string;
}

export class ProcessTree {
  readonly #options: ProcessTreeOptions;
  readonly #known = new Set<string>();
  /** Who got which signal, as `identity signal`: nobody gets the same one twice. */
  readonly #told = new Set<string>();
  /** The kernel keeps a group's id reserved while it has members; once that is over it may belong to strangers. */
  #groupOpen = true;

  constructor(options: ProcessTreeOptions) {
    this.#options = options;
  }

  /** Looks who is there now. */
  members(): ProcessEntry[] {
    const { system, leaderPid, leaderStartedAt, runId } = this.#options;
    const table = system.listProcesses(leaderStartedAt);
    if (table.some((entry) => entry.pid === leaderPid && entry.startedAt !== leaderStartedAt)) {
      this.close(); // a stranger has the leader's pid, so the group had become empty
    }
    const members = treeMembers(table, {
      pid: leaderPid,
      startedAt: leaderStartedAt,
      runId,
      groupOpen: this.#groupOpen,
      known: this.#known,
      ownPid: process.pid,
    });
    for (const member of members) this.#known.add(identityOf(member));
    return members;
  }

  /** To be called when nobody is left: from now on not even the group's id is used. */
  close(): void {
    this.#groupOpen = false;
  }

  /**
   * Asks everybody who is there to end, once. Those that come later are not asked: they may be what a trap of the
   * command started to clean up, and the grace is theirs too.
   */
  ask(signal: NodeJS.Signals): void {
    const members = this.members();
    const untold = members.filter((member) => !this.#told.has(tellingOf(member, signal)));
    if (untold.length === members.length) this.#send(untold, signal);
    else for (const member of untold) this.#sendTo(member, signal);
    for (const member of members) this.#told.add(tellingOf(member, signal));
    this.resumeStopped(members);
  }

  /** A stopped process acts on a signal only when it is continued. */
  resumeStopped(members: readonly ProcessEntry[]): void {
    for (const member of members) if (member.state === "stopped") this.#sendTo(member, "SIGCONT");
  }

  /** Kills these members; gives those that we are not allowed to signal. */
  kill(members: readonly ProcessEntry[]): ProcessEntry[] {
    return this.#send(members, "SIGKILL");
  }

  /** Passes a signal on to the command's process group, as a terminal would. Nothing happens after its end. */
  signalGroup(signal: NodeJS.Signals): void {
    const { system, leaderPid, leaderStartedAt } = this.#options;
    const holder = this.#groupOpen ? system.startedAt(leaderPid) : undefined;
    if (holder !== undefined && holder !== leaderStartedAt) this.close();
    if (this.#groupOpen) system.kill(-leaderPid, signal);
  }

  /** Sends to the group in one step, which no fork can slip through, and to all others one by one. */
  #send(members: readonly ProcessEntry[], signal: NodeJS.Signals): ProcessEntry[] {
    const grouped = members.filter((member) => member.groupId === this.#options.leaderPid);
    const groupDelivery = grouped.length > 0 ? this.#sendToGroup(signal) : "gone";
    const single =
      groupDelivery === "refused" ? members : members.filter((m) => !grouped.includes(m));
    return single.filter((member) => this.#sendTo(member, signal) === "refused");
  }

  #sendToGroup(signal: NodeJS.Signals): Delivery {
    return this.#options.system.kill(-this.#options.leaderPid, signal);
  }

  /** The pid is checked once more at the last moment, for it may have been used again since the table was read. */
  #sendTo(member: ProcessEntry, signal: NodeJS.Signals): Delivery {
    const { system } = this.#options;
    if (system.startedAt(member.pid) !== member.startedAt) return "gone";
    return system.kill(member.pid, signal);
  }
}

function tellingOf(member: ProcessEntry, signal: NodeJS.Signals): string {
  return `${identityOf(member)} ${signal}`;
}
