/**
 * One attempt to have a script run, and what can become of it.
 */
import type { Deadline } from "../deadline.js";
import type { FencekeeperError } from "../errors.js";
import type { ScriptName } from "./script-files.js";

/** A call of a script. */
export interface ScriptRequest {
  script: ScriptName;
  keys: string[];
  values: (string | Buffer)[];
}

/** A plain command. Only what is deliberately unfenced sends one. */
export interface CommandRequest {
  command: "GET" | "SET" | "DEL";
  values: (string | Buffer)[];
}

/** When a call gives up waiting. */
export interface Limits {
  deadline: Deadline;
  signal: AbortSignal | undefined;
}

/** What became of one attempt. Errors here hold no secrets and no values. */
export type Attempt =
  | { kind: "reply"; reply: unknown }
  /** Nothing but an error will come; when `passing`, nothing was run and asking again may help. */
  | { kind: "refused"; error: FencekeeperError; passing: boolean }
  /** Certainly never sent. */
  | { kind: "unsent"; cause: Error }
  /** Sent, and no answer came: it may have been run, or may still be. */
  | { kind: "lost"; cause: Error };
