/**
 * Which result keys have refused writes, read from their fences for people who look. Reads only: every key of the
 * database is passed by, a page at a time, so the server is never busy with it for long.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { SinkFaultError } from "../errors.js";
import { ask } from "./ask.js";
import { RedisConnection } from "./connection.js";
import { FENCE_PATTERN, resultKeyOf } from "./fence-key.js";
import { serverCode } from "./server-error.js";

export interface StaleWritesOptions {
  url: string;
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
const PAGE_KEYS = "1000";

type Send = <Answer>(
  words: (string | Buffer)[],
  answerOf: (reply: unknown) => Answer,
) => Promise<Answer>;

/**
 * All keys with refused or observed writes, those with the most first.
 *
 * @throws OptionError when an option cannot be used
 * @throws SinkUnreachableError, SinkDeniedError and the other errors of a read
 */
export async function readStaleWrites(options: StaleWritesOptions): Promise<StaleWrites[]> {
  const { url, timeoutMs = 5_000, signal, clock = systemClock } = options;
  const connection = new RedisConnection({
    ...{ url, connectTimeoutMs: timeoutMs, replyTimeoutMs: timeoutMs },
    ...{ name: "fencekeeper-status", clock },
  });
  const send: Send = ([command = "", ...values], answerOf) => {
    const limits = { deadline: Deadline.after(timeoutMs, clock), signal };
    const request = () => ({ command: String(command), values });
    return ask(connection, { request, writes: false, answerOf }, limits);
  };
  try {
    return await scan(send);
  } finally {
    await connection.close();
  }
}

async function scan(send: Send): Promise<StaleWrites[]> {
  const found = new Map<string, StaleWrites>(); // a scan may meet a key twice
  let cursor = "0";
  do {
    const words = ["SCAN", cursor, "MATCH", FENCE_PATTERN, "COUNT", PAGE_KEYS];
    const page = await send(words, pageOf);
    cursor = page.cursor;
    const nowMs = await send(["TIME"], serverMs);
    const read = await Promise.all(page.keys.map((fenceKey) => readFence(send, fenceKey, nowMs)));
    for (const each of read) if (each !== undefined) found.set(each.key, each);
  } while (cursor !== "0");
  const total = ({ staleCount, observedCount }: StaleWrites) => staleCount + observedCount;
  return [...found.values()].sort((a, b) => total(b) - total(a) || (a.key < b.key ? -1 : 1));
}

async function readFence(
  send: Send,
  fenceKey: Buffer,
  nowMs: number,
): Promise<StaleWrites | undefined> {
  const key = resultKeyOf(String(fenceKey));
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
    if (error instanceof SinkFaultError && isWrongType(error.cause)) return undefined;
    throw error;
  }
}

const isWrongType = (cause: unknown) =>
  cause instanceof Error && serverCode(cause.message) === "WRONGTYPE";

function pageOf(reply: unknown): { cursor: string; keys: Buffer[] } {
  const [cursor, keys]: unknown[] = Array.isArray(reply) ? reply : [];
  if (Buffer.isBuffer(cursor) && Array.isArray(keys) && keys.every(Buffer.isBuffer)) {
    return { cursor: String(cursor), keys };
  }
  throw new SinkFaultError("Redis gave a reply to SCAN that is not a page of keys");
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
