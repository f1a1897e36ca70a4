/**
 * One attempt to have a script run, and what can become of it.
 */
import type { Deadline } from "../deadline.js";
import type { FencekeeperError } from "../errors.js";
import type { ScriptName } from "./script-files.js";

export type ScriptValues = (string | Buffer)[];

/** A call of a script. */
export interface ScriptRequest {
  script: ScriptName;
  keys: string[];
  /** A promise where a part of them is still computed while a staged value is on its way. */
  values: ScriptValues | Promise<ScriptValues>;
  /** A value that is put at a key of its own just before, in the same breath; the script moves or removes it. */
  stage?: { key: string; value: Buffer; ttlMs: number };
  /** What to wait for after the reply, on the same connection: `WAIT` or `WAITAOF` with its arguments. */
  wait?: { command: "WAIT" | "WAITAOF"; values: string[] };
}

/** A plain command. Only what reads, and what is deliberately unfenced, sends one. */
export interface CommandRequest {
  command: string;
  /** The first is the key, where it has one. */
  values: (string | Buffer)[];
  /** A key of the server that is asked, where the command has none. */
  at?: string;
}

/** When a call gives up waiting. */
export interface Limits {
  deadline: Deadline;
  signal: AbortSignal | undefined;
}

/** What became of one attempt. Errors here hold no secrets and no values. */
export type Attempt =
  /** `waited` is the reply to what was waited for; undefined when there was none in time. */
  { kind: "reply"; reply: unknown; waited?: unknown } | Failure;

/** Why an attempt had no reply. */
export type Failure =
  /** Nothing but an error will come; when `passing`, nothing was run and asking again may help. */
  | { kind: "refused"; error: FencekeeperError; passing: boolean }
  /** Certainly never sent. */
  | { kind: "unsent"; cause: Error }
  /** Sent, and no answer came: it may have been run, or may still be. */
  | { kind: "lost"; cause: Error };
