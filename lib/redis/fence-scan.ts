/**
 * Passes by all fences of a Redis, on every primary of a cluster, a page at a time, so that no server is busy with it
 * for long. Reads only.
 */
import { SinkFaultError } from "../errors.js";
import { ask } from "./ask.js";
import type { Limits } from "./attempt.js";
import type { RedisConnection } from "./connection.js";
import { FENCE_PATTERN } from "./fence-key.js";

/** Keys of every kind that a server passes by for one page. */
const PAGE_KEYS = "1000";

export interface FencePage {
  /** Keys of fences, and of whatever a stranger has named like one. A scan may give the same key again. */
  fenceKeys: string[];
  /** A key of the server that has them, for commands that have none. */
  at: string;
}

/**
 * A fence that is there from the beginning to the end is met; one that comes or goes meanwhile may be.
 *
 * @throws SinkUnreachableError, SinkDeniedError and the other errors of a read
 */
export async function* scanFences(
  connection: RedisConnection,
  limitsOf: () => Limits,
): AsyncGenerator<FencePage> {
  const send = <Answer>(
    [command = "", ...values]: string[],
    at: string,
    answerOf: (reply: unknown) => Answer,
  ) => {
    const request = () => ({ command, values, at });
    return ask(connection, { request, writes: false, answerOf }, limitsOf());
  };
  await send(["PING"], "", () => undefined); // from here on it is known which servers there are
  for (const { key: at } of connection.servers) {
    let cursor = "0";
    do {
      const words = ["SCAN", cursor, "MATCH", FENCE_PATTERN, "COUNT", PAGE_KEYS];
      const page = await send(words, at, pageOf);
      cursor = page.cursor;
      if (page.keys.length > 0) yield { fenceKeys: page.keys.map(String), at };
    } while (cursor !== "0");
  }
}

function pageOf(reply: unknown): { cursor: string; keys: Buffer[] } {
  const [cursor, keys]: unknown[] = Array.isArray(reply) ? reply : [];
  if (Buffer.isBuffer(cursor) && Array.isArray(keys) && keys.every(Buffer.isBuffer)) {
    return { cursor: String(cursor), keys };
  }
  throw new SinkFaultError("Redis gave a reply to SCAN that is not a page of keys");
}
