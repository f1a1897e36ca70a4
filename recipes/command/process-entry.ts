/** One line of a process table, and the system calls a process tree needs; everything above is free of I/O. */

/** A process as the table showed it. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly groupId: number;
  /** 0 where the platform does not tell. */
  readonly sessionId: number;
  /** When it started, in the platform's own unit: only good for comparing. With `pid` it names one process for ever. */
  readonly startedAt: number;
  /** A zombie has ended and only waits for its parent to ask how. */
  readonly state: "running" | "stopped" | "zombie";
  /** Value of the marker variable in its environment; undefined: none, or it cannot be read. */
  readonly marker: string | undefined;
}

/** What became of a signal that was sent. */
export type Delivery = "sent" | "gone" | "refused";

/** The operating system, as far as a process tree is concerned. */
export interface ProcessSystem {
  /**
   * All processes. Markers are read only of those that started at `markersSince` or later: the tree's own are never
   * older than its leader, and on a machine with ten thousand processes the others are most of the work.
   *
   * Synchronous on purpose: the shorter the time from look to signal, the fewer processes slip through, and an
   * 'exit' hook cannot wait.
   */
  listProcesses(markersSince: number): ProcessEntry[];
  /** Start of the process that has this pid now; undefined: there is none. */
  startedAt(pid: number): number | undefined;
  /** Sends a signal to a process, or to a group where `pid` is negative. */
  kill(pid: number, signal: NodeJS.Signals): Delivery;
}

/** A name for one process that stays true when its pid is used again. */
export function identityOf(entry: { pid: number; startedAt: number }): string {
  return `${entry.pid}@${entry.startedAt}`;
}
