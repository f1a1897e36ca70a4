/** What it means that a command could not be started, in the words and numbers of a shell. */
import { CommandStartError } from "../../lib/errors.js";

/** Turns a failure of `spawn` into an error with the exit status 127 (not found) or 126 (cannot be executed). */
export function commandStartError(command: string, cause: unknown): CommandStartError {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  // A script whose interpreter is missing gives ENOENT as well, and the system does not tell the two apart.
  if (code === "ENOENT" || command === "") {
    const message = `command not found (it, or the interpreter in its first line): ${command}`;
    return new CommandStartError(message, 127, { cause });
  }
  return new CommandStartError(
    `command cannot be executed: ${command}: ${WORDS[code ?? ""] ?? String(cause)}`,
    126,
    { cause },
  );
}

const WORDS: Record<string, string> = {
  EACCES: "not an executable file, or permission denied (EACCES)",
  ENOEXEC: "not in a format that this system executes (ENOEXEC)",
  ENOTDIR: "a part of its path is not a directory (ENOTDIR)",
  E2BIG: "its arguments and environment are too long (E2BIG)",
};
