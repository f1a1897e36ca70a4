/**
 * Which result keys have refused writes, read from their fences for people who look. Reads only: every key of the
 * database is passed by, a page at a time, so the server is never busy with it for long.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { SinkFaultError } from "../errors.js";
import type { TlsOptions } from "../tls/tls-options.js";
import { ask } from "./ask.js";
import { RedisConnection } from "./connection.js";
import { resultKeyOf } from "./fence-key.js";
import { scanFences } from "./fence-scan.js";
import { isWrongType } from "./server-error.js";

export interface StaleWritesOptions {
  url: string;
  /** Of the server, where it is not in the address. */
  password?: string | undefined;
  /** Own certificates, for a `rediss` address. */
  tls?: TlsOptions | undefined;
  /** How long the server may take for one page. Default: 5000. */
  timeoutMs?: number;
  signal?: AbortSignal;
  clock?: Clock;
}

/** A key whose fence has met writes below it. */
export interface StaleWrites {
  key: string;
  /** As it is stored: a long job id is a hash. */
  job: string;
  /** Canonical text of the token at which the fence stands. */
  tokenText: string;
  /** Refused writes. */
  staleCount: number;
  /** Writes that would have been refused, and were only observed. */
  observedCount: number;
  /** The last of them; undefined when the fence does not say. */
  last: { tokenText: string; atMs: number; ageMs: number } | undefined;
}

const FIELDS = ["token", "job", "stale", "observed", "lastStaleToken", "lastStaleAt"];

type Send = <Answer>(
  words: string[],
  answerOf: (reply: unknown) => Answer,
  at?: string,
) => Promise<Answer>;

/**
 * All keys with refused or observed writes, those with the most first.
 *
 * @throws OptionError when an option cannot be used
 * @throws SinkUnreachableError, SinkDeniedError and the other errors of a read
 */
export async function readStaleWrites(options: StaleWritesOptions): Promise<StaleWrites[]> {
  const { url, password, tls, timeoutMs = 5_000, signal, clock = systemClock } = options;
  const connection = new RedisConnection({
    ...{ url, password, tls, connectTimeoutMs: timeoutMs, replyTimeoutMs: timeoutMs },
    ...{ name: "fencekeeper-status", clock },
  });
  const limitsOf = () => ({ deadline: Deadline.after(timeoutMs, clock), signal });
  const send: Send = ([command = "", ...values], answerOf, at) => {
    const request = () => (at === undefined ? { command, values } : { command, values, at });
    return ask(connection, { request, writes: false, answerOf }, limitsOf());
  };
  const found = new Map<string, StaleWrites>(); // a scan may meet a key twice
  try {
    for await (const { fenceKeys, at } of scanFences(connection, limitsOf)) {
      const nowMs = await send(["TIME"], serverMs, at);
      const read = await Promise.all(fenceKeys.map((fenceKey) => readFence(send, fenceKey, nowMs)));
      for (const each of read) if (each !== undefined) found.set(each.key, each);
    }
  } finally {
    await connection.close();
  }
  const total = ({ staleCount, observedCount }: StaleWrites) => staleCount + observedCount;
  return [...found.values()].sort((a, b) => total(b) - total(a) || (a.key < b.key ? -1 : 1));
}

async function readFence(
  send: Send,
  fenceKey: string,
  nowMs: number,
): Promise<StaleWrites | undefined> {
  const key = resultKeyOf(fenceKey);
  if (key === undefined) return undefined;
  try {
    const fields = await send(["HMGET", fenceKey, ...FIELDS], textsOf);
    const [tokenText = "", job = "", stale, observed, lastToken = "", lastAt] = fields;
    const staleCount = Number(stale);
    const observedCount = Number(observed);
    if (!(staleCount + observedCount > 0)) return undefined;
    const atMs = Number(lastAt);
    const last =
      lastToken === ""
        ? undefined
        : { tokenText: lastToken, atMs, ageMs: Math.max(0, nowMs - atMs) };
    return { key, job, tokenText, staleCount, observedCount, last };
  } catch (error) {
    // a stranger's key of another type under our prefix: `get` and `commit` say so, where it matters
    if (isWrongType(error)) return undefined;
    throw error;
  }
}

/** The fields of a hash, empty where there is none. */
function textsOf(reply: unknown): string[] {
  if (Array.isArray(reply)) return reply.map((field) => (field === null ? "" : String(field)));
  throw new SinkFaultError("Redis gave a reply that is not an array");
}

function serverMs(reply: unknown): number {
  const [seconds, microseconds] = textsOf(reply).map(Number);
  return (seconds ?? 0) * 1_000 + Math.floor((microseconds ?? 0) / 1_000);
}
