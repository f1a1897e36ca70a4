/** Reads the text of /proc/PID/stat and /proc/PID/environ. Pure. */
import type { ProcessEntry } from "./process-entry.js";
import { MARKER_NAME } from "./process-marker.js";

/** A line of /proc/PID/stat without the marker, which is in another file. */
export type ProcStat = Omit<ProcessEntry, "marker">;

/** Field numbers of proc(5), counted from the one after the name, which is field 3. */
const FIELD = { state: 0, parentPid: 1, groupId: 2, sessionId: 3, threads: 17, startedAt: 19 };

/** Undefined where the text is not a whole line, as when the process ended while it was read. */
export function parseProcStat(text: string): ProcStat | undefined {
  // The name is the user's to choose, spaces and parentheses included; only the last ")" is sure to end it.
  const nameEnd = text.lastIndexOf(")");
  const pid = Number.parseInt(text, 10);
  const fields = text.slice(nameEnd + 2).split(" ");
  const number = (index: number) => Number(fields[index]);
  const startedAt = number(FIELD.startedAt);
  if (nameEnd < 0 || !Number.isInteger(pid) || !Number.isFinite(startedAt)) return undefined;
  return {
    pid,
    parentPid: number(FIELD.parentPid),
    groupId: number(FIELD.groupId),
    sessionId: number(FIELD.sessionId),
    startedAt,
    state: stateOf(fields[FIELD.state] ?? "", number(FIELD.threads)),
  };
}

function stateOf(letter: string, threads: number): ProcessEntry["state"] {
  // A process whose first thread has ended shows as zombie while its other threads run on.
  if ((letter === "Z" || letter === "X") && threads <= 1) return "zombie";
  return letter === "T" || letter === "t" ? "stopped" : "running";
}

/** The marker in an environment as the kernel shows it: `NAME=value` parts, each ended by a NUL. */
export function markerIn(environ: Buffer): string | undefined {
  const prefix = `${MARKER_NAME}=`;
  // Latin-1 reads any bytes without loss; the marker itself is ASCII.
  const found = environ
    .toString("latin1")
    .split("\0")
    .find((part) => part.startsWith(prefix));
  return found?.slice(prefix.length);
}
