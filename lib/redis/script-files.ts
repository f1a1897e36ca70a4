/**
 * The Lua scripts as text. Each is a file of its own beside this one, so that services in other languages can call
 * the same files; the build copies them.
 */
import { readFileSync } from "node:fs";

/** The verbs that write results and fences. */
export const WRITE_SCRIPTS = [
  "advanceFence",
  "commitResult",
  "commitResults",
  "invalidateResult",
] as const;

/** The verbs of the sink, and of `compact`; each has a script of that name. */
export const SCRIPT_NAMES = [...WRITE_SCRIPTS, "readResult", "raiseFloor", "dropFence"] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

/** The text of a script. */
export function scriptText(name: ScriptName): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), "utf8");
}
