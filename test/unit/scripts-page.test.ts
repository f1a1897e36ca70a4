/**
 * Goal: docs/scripts.md, by which others call the scripts, says what is so. Method: it is held against the headers of
 * the scripts, the keys of the sink and the README.
 */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fenceKeyOf, floorKeyOf } from "../../lib/redis/fence-key.js";
import { REPLY_CODES } from "../../lib/redis/replies.js";
import { SCRIPT_NAMES, type ScriptName, scriptText } from "../../lib/redis/script-files.js";
import { slotOf } from "../../lib/redis/slot.js";
import { SCRIPTS_PAGE } from "../support/scripts-page.js";

const ROOT = new URL("../../", import.meta.url);
const rootText = (name: string) => readFileSync(new URL(name, ROOT), "utf8");

function headerOf(name: ScriptName): string {
  const lines = scriptText(name).split("\n");
  const header = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith("--")),
  );
  return header.map((line) => line.replace(/^-- ?/, "")).join("\n");
}

describe("the page about the scripts", () => {
  it.each(SCRIPT_NAMES)("has keys, arguments and replies of %s as its header has them", (name) => {
    const block = new RegExp(`^### ${name}\n\n\`\`\`text\n([\\s\\S]*?)\n\`\`\`$`, "m");
    expect(block.exec(SCRIPTS_PAGE)?.[1]).toBe(headerOf(name));
  });

  it("has a section for each script, and for no other", () => {
    const sections = [...SCRIPTS_PAGE.matchAll(/^### (.*)$/gm)].map(([, name]) => name);
    expect(sections.sort()).toEqual([...SCRIPT_NAMES].sort());
  });

  it("gives keys and slots as the sink has them", () => {
    const rows = [...SCRIPTS_PAGE.matchAll(/^\| `(.*)` \| `(.*)` \| `(.*)` \| (\d+) \|$/gm)];
    expect(rows.length).toBeGreaterThan(3);
    for (const [, key = "", fence, floor, slot] of rows) {
      expect([fence, floor, Number(slot)]).toEqual([fenceKeyOf(key), floorKeyOf(key), slotOf(key)]);
    }
  });

  it("says what to do with every reply of the scripts that a service calls", () => {
    const { raiseFloor, dropFence, ...called } = REPLY_CODES;
    const [, table = ""] = /^## What to do with a reply$([\s\S]*?)^## /m.exec(SCRIPTS_PAGE) ?? [];
    const codes = new Set(Object.values(called).flat());
    codes.delete("result"); // what was asked for
    for (const code of codes) expect(table).toContain(`\`${code}\``);
  });

  it("is linked from the README and part of the package", () => {
    expect(rootText("README.md")).toContain("(docs/scripts.md)");
    const { files } = JSON.parse(rootText("package.json")) as { files: string[] };
    expect(files).toContain("docs");
    for (const [, file = ""] of rootText("README.md").matchAll(/\]\((docs\/[^)#]+)/g)) {
      expect(existsSync(new URL(file, ROOT)), file).toBe(true);
    }
  });
});
