/** Lists and signals processes: from /proc on Linux, with `ps` elsewhere. The only file here that asks the system. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { markerIn, type ProcStat, parseProcStat } from "./proc-stat.js";
import type { Delivery, ProcessEntry, ProcessSystem } from "./process-entry.js";
import { PS_COLUMNS, parsePsListing, parsePsStart } from "./ps-listing.js";

/** Linux: everything, markers included. */
export const procSystem: ProcessSystem = {
  listProcesses(markersSince) {
    const entries: ProcessEntry[] = [];
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const stat = readStat(name);
      if (!stat) continue;
      const wanted = stat.startedAt >= markersSince && stat.state !== "zombie";
      entries.push({ ...stat, marker: wanted ? readMarker(name) : undefined });
    }
    return entries;
  },
  startedAt: (pid) => readStat(String(pid))?.startedAt,
  kill: sendSignal,
};

/** Elsewhere: groups, parents and starts, no sessions and no markers. */
export const psSystem: ProcessSystem = {
  listProcesses: () => parsePsListing(runPs(["-A", "-o", PS_COLUMNS])),
  startedAt(pid) {
    try {
      return parsePsStart(runPs(["-o", "lstart=", "-p", String(pid)]));
    } catch {
      return undefined; // `ps` fails when it has nothing to show: there is no such process
    }
  },
  kill: sendSignal,
};

/** The one for this platform. */
export const processSystem: ProcessSystem = process.platform === "linux" ? procSystem : psSystem;

function readStat(pid: string): ProcStat | undefined {
  return readIfThere(`/proc/${pid}/stat`, (bytes) => parseProcStat(bytes.toString("latin1")));
}

function readMarker(pid: string): string | undefined {
  return readIfThere(`/proc/${pid}/environ`, markerIn);
}

/** Undefined for a process that has gone and for one of another user; every other failure is thrown. */
function readIfThere<T>(path: string, parse: (bytes: Buffer) => T): T | undefined {
  try {
    return parse(readFileSync(path));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    // ENOENT, ESRCH: it ended meanwhile. EACCES, EPERM: not ours to read; parent, group and session still tell.
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(code)) return undefined;
    throw error; // out of descriptors, say: "not seen" must not be taken for "gone"
  }
}

function runPs(args: string[]): string {
  // The C locale and UTC, so that a start reads the same every time, also across a change to summer time.
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const stdio: ["ignore", "pipe", "ignore"] = ["ignore", "pipe", "ignore"];
  return execFileSync("ps", args, { encoding: "utf8", env, stdio, maxBuffer: 64 * 1024 * 1024 });
}

function sendSignal(pid: number, signal: NodeJS.Signals): Delivery {
  try {
    process.kill(pid, signal);
    return "sent";
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ESRCH") return "gone";
    if (code === "EPERM") return "refused"; // it runs as another user
    throw error;
  }
}
