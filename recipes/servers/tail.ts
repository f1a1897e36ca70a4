/** The end of a log, for error messages. */
import { readFile } from "node:fs/promises";

const LINES = 12;

export function tailOf(text: string): string {
  return text.trimEnd().split("\n").slice(-LINES).join("\n");
}

/** Empty when there is no such file. */
export async function tailOfFile(path: string): Promise<string> {
  return tailOf(await readFile(path, "utf8").catch(() => "")); // the server ended before it wrote anything
}
