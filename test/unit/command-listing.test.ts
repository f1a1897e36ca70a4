import { describe, expect, it } from "vitest";
import { exitStatusNumber } from "../../recipes/command/exit-status.js";
import { markerIn, parseProcStat } from "../../recipes/command/proc-stat.js";
import { markerHas, markerWith } from "../../recipes/command/process-marker.js";
import { procSystem, psSystem } from "../../recipes/command/process-system.js";
import { parsePsListing } from "../../recipes/command/ps-listing.js";
import { commandStartError } from "../../recipes/command/start-error.js";

function statLine({ name = "sh", state = "S", threads = 1 }): string {
  const rest = `0 -1 4194304 191 0 0 0 0 0 0 0 20 0 ${threads} 0 315154 2990080 417 18446744073709551615`;
  return `4711 (${name}) ${state} 4700 4711 4600 ${rest} 0 0\n`;
}

describe("a line of /proc/PID/stat", () => {
  it.each(["sh", "a b", ") S 1 1 1", "((", "tmux: server", ""])(
    "is read with the name %j",
    (name) => {
      expect(parseProcStat(statLine({ name }))).toEqual({
        pid: 4711,
        parentPid: 4700,
        groupId: 4711,
        sessionId: 4600,
        startedAt: 315154,
        state: "running",
      });
    },
  );

  it.each([
    ["R", 1, "running"],
    ["D", 1, "running"],
    ["T", 1, "stopped"],
    ["t", 1, "stopped"],
    ["Z", 1, "zombie"],
    ["X", 0, "zombie"],
    ["Z", 3, "running"],
  ])("with state %s and %i threads is %s", (state, threads, expected) => {
    expect(parseProcStat(statLine({ state, threads }))?.state).toBe(expected);
  });

  it.each(["", "4711", "4711 (sh) S 1 2 3", "no stat at all"])("is refused if it is %j", (text) => {
    expect(parseProcStat(text)).toBeUndefined();
  });
});

describe("the marker", () => {
  it("is found in an environment with any other bytes", () => {
    const environ = Buffer.from(
      "A=\xff\xfe\0XFENCEKEEPER_RUN=no\0FENCEKEEPER_RUN=yes\0B=",
      "latin1",
    );
    expect(markerIn(environ)).toBe("yes");
  });

  it("is absent from an empty environment and from one that only mentions its name", () => {
    expect(markerIn(Buffer.alloc(0))).toBeUndefined();
    expect(markerIn(Buffer.from("A=FENCEKEEPER_RUN=no\0"))).toBeUndefined();
  });

  it("of a run inside a run names both", () => {
    const inner = markerWith(markerWith(undefined, "outer"), "inner");
    expect([markerHas(inner, "outer"), markerHas(inner, "inner")]).toEqual([true, true]);
    expect([markerHas(inner, "inn"), markerHas(undefined, "inner")]).toEqual([false, false]);
  });
});

describe("the listing of ps", () => {
  it("is read line by line, and what is no process is left out", () => {
    const listing = [
      "    1     0     1 Ss   Mon Jan  1 00:00:00 2024",
      "  612     1   610 T+   Tue Feb  6 23:59:59 2024",
      "  613   612   610 Z    Tue Feb  6 23:59:59 2024",
      "ps: warning: something",
      "",
    ].join("\n");
    const entries = parsePsListing(listing);
    expect(entries.map((e) => [e.pid, e.parentPid, e.groupId, e.state])).toEqual([
      [1, 0, 1, "running"],
      [612, 1, 610, "stopped"],
      [613, 612, 610, "zombie"],
    ]);
    expect(entries[1]?.startedAt).toBeGreaterThan(entries[0]?.startedAt ?? Number.NaN);
    expect(entries[1]?.startedAt).toBe(entries[2]?.startedAt);
  });
});

describe.each([
  ["/proc", procSystem],
  ["ps", psSystem],
])("the processes listed from %s", (_name, system) => {
  it("show ourselves with parent and start, and the start alone agrees", () => {
    const self = system.listProcesses(0).find(({ pid }) => pid === process.pid);
    expect(self).toMatchObject({ parentPid: process.ppid, state: "running" });
    expect(system.startedAt(process.pid)).toBe(self?.startedAt);
  });

  it("have no start for a pid that is not there", () => {
    expect(system.startedAt(2 ** 30)).toBeUndefined();
  });

  it("cannot be signalled when they are not there", () => {
    expect(system.kill(2 ** 30, "SIGTERM")).toBe("gone");
  });
});

describe("the exit status as a number", () => {
  it.each([
    [{ code: 0 }, 0],
    [{ code: 255 }, 255],
    [{ signal: "SIGHUP" as const }, 129],
    [{ signal: "SIGKILL" as const }, 137],
    [{ signal: "SIGTERM" as const }, 143],
  ])("of %j is %i", (status, number) => {
    expect(exitStatusNumber(status)).toBe(number);
  });
});

describe("the exit status of a command that cannot be started", () => {
  const failure = (code: string) => Object.assign(new Error(code), { code });
  it.each([
    ["nowhere", "ENOENT", 127],
    ["", "ERR_INVALID_ARG_VALUE", 127],
    ["/etc", "EACCES", 126],
    ["/bad", "ENOEXEC", 126],
    ["/etc/passwd/x", "ENOTDIR", 126],
    ["huge", "E2BIG", 126],
    ["any", "EMFILE", 126],
  ])("of %j with %s is %i, as in a shell", (command, code, exitStatus) => {
    const error = commandStartError(command, failure(code));
    expect(error).toMatchObject({ exitStatus, code: "COMMAND_NOT_STARTED", definite: true });
  });
});
