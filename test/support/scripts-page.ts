/**
 * What stands in docs/scripts.md, which tells other languages how to call the scripts.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const SCRIPTS_PAGE = readFileSync(new URL("../../docs/scripts.md", import.meta.url), "utf8");

/** Where the page says that the scripts are, and where they are here. */
const INSTALLED = "node_modules/fencekeeper/dist/lib/redis/scripts";
const HERE = fileURLToPath(new URL("../../dist/lib/redis/scripts", import.meta.url));

/** The first example in a language that holds a text, with the scripts of this build. */
export function exampleOf(language: string, text: string): string {
  const blocks = SCRIPTS_PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"));
  const found = [...blocks].map(([, block = ""]) => block).find((block) => block.includes(text));
  if (found === undefined) throw new Error(`the page has no ${language} example with ${text}`);
  return found.replace(INSTALLED, HERE);
}
