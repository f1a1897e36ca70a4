/**
 * The Lua scripts as text. Each is a file of its own beside this one, so that services in other languages can call
 * the same files; the build copies them.
 */
import { readFileSync } from "node:fs";

/** The verbs of the sink; each has a script of that name with two keys, the result and its fence. */
export const SCRIPT_NAMES = ["advanceFence", "commitResult", "readResult"] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

/** The text of a script. */
export function scriptText(name: ScriptName): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), "utf8");
}
