/**
 * Who holds a claim, in words for people who look.
 */
import { hostname } from "node:os";
import type { Clock } from "../../lib/clock.js";

/** Asked for once: it is a call of the system's, and does not change while we run. */
const HOST = hostname();

/** `host:pid`, as written into znodes and fences. */
export function defaultHolder(): string {
  return `${HOST}:${process.pid}`;
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
  return { holder, host: HOST, pid: process.pid, since };
}
