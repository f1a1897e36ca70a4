/**
 * The header of each script is its contract for callers in any language. It is held against the code here, so that
 * it cannot rot: keys, arguments and reply codes are those that the code has, and keys come through KEYS only.
 */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REPLY_CODES } from "../../lib/redis/replies.js";
import {
  SCRIPT_NAMES,
  type ScriptName,
  scriptText,
  WRITE_SCRIPTS,
} from "../../lib/redis/script-files.js";

const FOLDER = new URL("../../lib/redis/scripts/", import.meta.url);
const SHARED =
  /^-- begin of the part .* every script \([\s\S]*^-- end of the part .* every script$/m;
const SHARED_BY_WRITES = /^-- begin of .* that writes \([\s\S]*^-- end of .* that writes$/m;

/** What a claim meets once its fence was raised, which it is here. */
const NEVER: Partial<Record<ScriptName, string[]>> = { advanceFence: ["lost"] };

/** The keys of each script by number; those of a batch go on in threes. */
const KEYS: Record<ScriptName, string[]> = {
  advanceFence: ["1", "2", "3"],
  commitResult: ["1", "2", "3", "4"],
  commitResults: ["1", "2", "3"],
  invalidateResult: ["1", "2", "3"],
  readResult: ["1", "2"],
  raiseFloor: ["1"],
  dropFence: ["1", "2", "3"],
};

interface Script {
  header: string;
  code: string;
}

function scriptOf(name: (typeof SCRIPT_NAMES)[number]): Script {
  const lines = scriptText(name).split("\n");
  const end = lines.findIndex((line) => !line.startsWith("--"));
  const code = lines.slice(end).filter((line) => !line.trimStart().startsWith("--"));
  return { header: lines.slice(0, end).join("\n"), code: code.join("\n") };
}

function all(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ""))].sort();
}

/** The lines below "Replies:" that are indented by three spaces begin with a code. */
function codesInHeader(header: string): string[] {
  return all(header.slice(header.indexOf("-- Replies:")), /^-- {3}([a-z]+)\b/gm);
}

it("every script file belongs to a verb of the sink", () => {
  const files = readdirSync(FOLDER).sort();
  expect(files).toEqual([...SCRIPT_NAMES].map((name) => `${name}.lua`).sort());
});

it("the part that all scripts have in common is the same in each", () => {
  const parts = SCRIPT_NAMES.map((name) => SHARED.exec(scriptText(name))?.[0]);
  expect(parts[0]).toContain("local function readFence(key)");
  expect(new Set(parts).size).toBe(1);
  const ofWrites = WRITE_SCRIPTS.map((name) => SHARED_BY_WRITES.exec(scriptText(name))?.[0]);
  expect(ofWrites[0]).toContain("local function refusalOf(");
  expect(new Set(ofWrites).size).toBe(1);
});

describe.each(SCRIPT_NAMES)("%s", (name) => {
  const { header, code } = scriptOf(name);

  it("documents the keys that it uses, and no other", () => {
    const documented = all(header, /^-- KEYS\[(\d+)\] {2}/gm);
    expect(documented).toEqual(KEYS[name]);
    if (name !== "commitResults") expect(all(code, /KEYS\[(\d+)\]/g)).toEqual(documented);
  });

  it("documents the arguments that it uses, and no other", () => {
    const documented = all(header, /^-- ARGV\[(\d+)\] {2}/gm);
    const used = all(code, /ARGV\[(\d+)\]/g);
    if (name !== "commitResults") expect(used).toEqual(documented);
    else expect(documented).toEqual(expect.arrayContaining(used));
  });

  it("documents the codes that it replies with, and no other", () => {
    const returned = all(code, /(?:return|refusal =|return false,) \{'([a-z]+)'/g);
    const never = NEVER[name] ?? [];
    const possible = returned.filter((each) => !never.includes(each));
    expect(codesInHeader(header)).toEqual(possible);
    expect([...REPLY_CODES[name]].sort()).toEqual(possible);
  });

  it("returns nothing but replies that begin with a code", () => {
    const main = code.slice(code.lastIndexOf("\nend\n"));
    const outermost = [...main.matchAll(/^(?: {2})?(?:if .* then )?return (.*)$/gm)];
    expect(outermost.length).toBeGreaterThan(0);
    for (const [, what] of outermost) expect(what).toMatch(/^(\{\n?$|\{'[a-z]+'|refusal\b)/);
  });

  it("names every key through KEYS, or through what was read from it", () => {
    const calls = [
      ...code.matchAll(
        /(?:redis\.(?:call|pcall|acl_check_cmd)|mayNot)\('?([A-Z]+|\.\.\.)'?(?:, *(\S+?)[,)])?/g,
      ),
    ];
    expect(calls.length).toBeGreaterThan(0);
    for (const [, command, first] of calls) {
      if (command === "TIME" || command === "...") expect(first).toBeUndefined();
      else expect(first).toMatch(/^(KEYS\[[1-4]\]|key|floorKey|fenceKey|entry\.(key|fenceKey))$/);
    }
    const made = [...code.matchAll(/\b(?:key|fenceKey|floorKey) = ([^,\n]*)/g)];
    for (const [, from] of made) expect(from).toMatch(/^(KEYS\[|3 \* number - 2$|entry\.)/);
  });

  it("never makes a number of a token", () => {
    expect(code).not.toContain("tonumber");
  });
});
