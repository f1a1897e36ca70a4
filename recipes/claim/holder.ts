/**
 * Who holds a claim, in words for people who look.
 */
import { hostname } from "node:os";
import type { Clock } from "../../lib/clock.js";

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

export function holderRecord(holder: string = defaultHolder(), clock: Clock): HolderRecord {
  const since = new Date(clock.wallMs()).toISOString();
  return { holder, host: hostname(), pid: process.pid, since };
}
