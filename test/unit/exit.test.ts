/**
 * Goal: every fault has a code of its own, and ends the command line with the exit code that the contract names.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CommandStartError, FencekeeperError } from "../../lib/errors.js";
import { EXIT, exitStatusOf } from "../../recipes/cli/exit.js";
import { Interrupted } from "../../recipes/cli/interrupted.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The codes of all error classes, read from the sources. */
const codes = ["lib", "recipes"].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [
      ...readFileSync(`${ROOT}${folder}/${name}`, "utf8").matchAll(/readonly code = "(\w+)"/g),
    ])
    .map(([, code = ""]) => code),
);

function faultWith(code: string): FencekeeperError {
  return new (class extends FencekeeperError {
    readonly code = code;
  })("a fault");
}

/** Recipes handle these themselves; when one gets out, that is a bug of ours. */
const NEVER_GET_OUT = ["ZOOKEEPER_NODE_EXISTS"];

describe("an error's code", () => {
  it("belongs to one class only", () => {
    expect(codes.length).toBeGreaterThan(25);
    expect([...codes].sort()).toEqual([...new Set(codes)].sort());
  });

  it("leads to an exit code that is not that of a bug", () => {
    const started = codes.filter((code) => code !== "COMMAND_NOT_STARTED");
    const bugs = started.filter((code) => exitStatusOf(faultWith(code)) === EXIT.bug);
    expect(bugs).toEqual(NEVER_GET_OUT);
  });
});

describe("the exit code", () => {
  it.each([
    [new CommandStartError("not found", 127), 127],
    [new CommandStartError("not executable", 126), 126],
    [new Interrupted("SIGINT"), 130],
    [new Interrupted("SIGTERM"), 143],
    [faultWith("OPTION_INVALID"), 64],
    [faultWith("RESULT_TOO_LARGE"), 65],
    [faultWith("ZOOKEEPER_UNREACHABLE"), 69],
    [faultWith("SINK_OUTCOME_UNKNOWN"), 69],
    [faultWith("SINK_DENIED"), 77],
    [faultWith("CONFIGURATION_INVALID"), 78],
    [new Error("a surprise"), 70],
    ["not even an error", 70],
  ])("of %s is %d", (error, status) => {
    expect(exitStatusOf(error)).toBe(status);
  });
});
