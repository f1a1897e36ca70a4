import { describe, expect, it } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { formatDuration, parseBytes, parseDurationMs } from "../../recipes/cli/duration.js";

describe("a duration on the command line", () => {
  it.each([
    ["500ms", 500],
    ["10s", 10_000],
    ["1.5s", 1_500],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["0s", 0],
  ])("%s is %d milliseconds", (text, ms) => {
    expect(parseDurationMs(text, "--wait")).toBe(ms);
  });

  it.each(["", "10", "-5s", "5 s", "5S", "1e3s", "s", "Infinity", "1h30m", "999999999999d"])(
    "%j is refused, with the name of the flag",
    (text) => {
      expect(() => parseDurationMs(text, "--wait")).toThrow(OptionError);
      expect(() => parseDurationMs(text, "--wait")).toThrow(/--wait/);
    },
  );

  it.each([
    [0, "0 ms"],
    [340, "340 ms"],
    [12_500, "12.5 s"],
    [200_000, "3 min 20 s"],
    [7_500_000, "2 h 5 min"],
    [273_600_000, "3 d 4 h"],
  ])("of %d milliseconds is shown as %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("a size on the command line", () => {
  it.each([
    ["4096B", 4_096],
    ["64KiB", 65_536],
    ["16MiB", 16_777_216],
    ["1GiB", 1_073_741_824],
  ])("%s is %d bytes", (text, bytes) => {
    expect(parseBytes(text, "--max-bytes")).toBe(bytes);
  });

  it.each(["", "16", "16MB", "-1B", "1.5MiB"])("%j is refused as a size", (text) => {
    expect(() => parseBytes(text, "--max-bytes")).toThrow(OptionError);
  });
});
