/**
 * How safe an accepted write has to be, and what was reached: replicas that have it (WAIT), and files that have it
 * (WAITAOF, Redis 7.2 and later).
 */
import { OptionError } from "../errors.js";
import type { Durability } from "../sink.js";
import type { ScriptRequest } from "./attempt.js";

export type DurabilityOptions =
  /** Replicas that must have it. */
  | { replicas: number; timeoutMs?: number }
  /** The append-only file of the server that takes it, and of so many replicas. */
  | { aof: true; replicas?: number; timeoutMs?: number };

const TIMEOUT_MS = 1_000;

/** What is sent after a write. @throws OptionError */
export function waitFor(options: DurabilityOptions): NonNullable<ScriptRequest["wait"]> {
  const { replicas = 0, timeoutMs = TIMEOUT_MS } = options;
  const aof = "aof" in options;
  if (!Number.isSafeInteger(replicas) || replicas < 0 || (!aof && replicas === 0)) {
    throw new OptionError(`durability.replicas must be a whole number above 0; it is ${replicas}`);
  }
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1) {
    throw new OptionError(`durability.timeoutMs must be whole milliseconds; it is ${timeoutMs}`);
  }
  return aof
    ? { command: "WAITAOF", values: ["1", String(replicas), String(timeoutMs)] }
    : { command: "WAIT", values: [String(replicas), String(timeoutMs)] };
}

/** What was reached, from the reply; undefined is a reply that did not come. */
export function reached(options: DurabilityOptions, reply: unknown): Durability {
  const aof = "aof" in options;
  const { replicas: wanted = 0 } = options;
  const [local, others] = aof ? (Array.isArray(reply) ? reply.map(Number) : [0, 0]) : [0, reply];
  const replicas = Number(others ?? 0);
  const isInFile = aof ? Number(local) >= 1 : undefined;
  return { replicas, aof: isInFile, reached: replicas >= wanted && isInFile !== false };
}
