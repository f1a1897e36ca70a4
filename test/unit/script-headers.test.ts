/**
 * The header of each script is its contract for callers in any language. It is held against the code here, so that
 * it cannot rot: keys, arguments and reply codes are those that the code has, and keys come through KEYS only.
 */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REPLY_CODES } from "../../lib/redis/replies.js";
import { SCRIPT_NAMES, scriptText } from "../../lib/redis/script-files.js";

const FOLDER = new URL("../../lib/redis/scripts/", import.meta.url);
const SHARED =
  /^-- begin of the part that is the same[\s\S]*^-- end of the part that is the same.*$/m;

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
  expect(parts[0]).toContain("local function readFence()");
  expect(new Set(parts).size).toBe(1);
});

describe.each(SCRIPT_NAMES)("%s", (name) => {
  const { header, code } = scriptOf(name);

  it("documents the keys that it uses, and no other", () => {
    expect(all(header, /KEYS\[(\d+)\] {2}/g)).toEqual(["1", "2"]);
    expect(all(code, /KEYS\[(\d+)\]/g)).toEqual(["1", "2"]);
  });

  it("documents the arguments that it uses, and no other", () => {
    expect(all(header, /ARGV\[(\d+)\] {2}/g)).toEqual(all(code, /ARGV\[(\d+)\]/g));
  });

  it("documents the codes that it replies with, and no other", () => {
    const returned = all(code, /(?:return|reply =) \{'([a-z]+)'/g);
    expect(codesInHeader(header)).toEqual(returned);
    expect([...REPLY_CODES[name]].sort()).toEqual(returned);
  });

  it("returns nothing but replies that begin with a code", () => {
    const main = code.slice(code.lastIndexOf("\nlocal kind ="));
    for (const [, what] of main.matchAll(/\breturn (.*)/g)) {
      expect(what).toMatch(/^(\{'[a-z]+'|reply$)/);
    }
  });

  it("names every key through KEYS", () => {
    const calls = [
      ...code.matchAll(/redis\.(?:call|pcall|acl_check_cmd)\('([A-Z]+)'(?:, *(\S+?)[,)])?/g),
    ];
    expect(calls.length).toBeGreaterThan(0);
    for (const [, command, first] of calls) {
      if (command === "TIME") expect(first).toBeUndefined();
      else expect(first).toMatch(/^KEYS\[[12]\]$/);
    }
    expect(calls).toHaveLength([...code.matchAll(/redis\.(?:call|pcall|acl_check_cmd)\(/g)].length);
  });

  it("never makes a number of a token", () => {
    expect(code).not.toContain("tonumber");
  });
});
