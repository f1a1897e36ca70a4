/**
 * Who holds a claim, in words for people who look.
 */
import { hostname } from "node:os";

/** `host:pid`, as written into znodes and fences. */
export function defaultHolder(): string {
  return `${hostname()}:${process.pid}`;
}

/** The small JSON that a contender's znode carries. */
export interface HolderRecord {
  holder: string;
  host: string;
  pid: number;
  /** Wall-clock time, ISO 8601; for people only. */
  since: string;
}

export function holderRecord(holder: string = defaultHolder()): HolderRecord {
  return { holder, host: hostname(), pid: process.pid, since: new Date().toISOString() };
}
