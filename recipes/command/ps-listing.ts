/** Reads the listing of `ps` for platforms without /proc (macOS, the BSDs). Pure. */
import type { ProcessEntry } from "./process-entry.js";

/** Columns to ask for; the start comes last because it has spaces. */
export const PS_COLUMNS = "pid=,ppid=,pgid=,stat=,lstart=";

/** Lines that are not of this form are left out: `ps` prints warnings among them on some systems. */
export function parsePsListing(text: string): ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const line of text.split("\n")) {
    const [pid, parentPid, groupId, stat, ...start] = line.trim().split(/\s+/);
    const startedAt = parsePsStart(start.join(" "));
    if (stat === undefined || startedAt === undefined) continue;
    entries.push({
      pid: Number(pid),
      parentPid: Number(parentPid),
      groupId: Number(groupId),
      // `ps` shows a kernel address as session where it shows one at all, and no other process's environment.
      sessionId: 0,
      startedAt,
      state: stat.startsWith("Z") ? "zombie" : stat.startsWith("T") ? "stopped" : "running",
      marker: undefined,
    });
  }
  return entries;
}

/** A start such as `Mon Jan  1 00:00:00 2024` in milliseconds, exact to the second; undefined: not a date. */
export function parsePsStart(text: string): number | undefined {
  const startedAt = Date.parse(text.trim());
  return Number.isNaN(startedAt) ? undefined : startedAt;
}
