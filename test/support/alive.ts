/**
 * Whether a process is there and runs. One that has ended and waits for its parent to notice is not.
 */
import { readFileSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false; // no such process: what the tests ask for
  }
}
