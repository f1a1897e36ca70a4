/**
 * Goes through the fences of a Redis server, up to a bound. Reads only.
 */
import { FenceCorruptError, FencekeeperError, ResultTypeError } from "../../../lib/errors.js";
import { resultKeyOf } from "../../../lib/redis/fence-key.js";
import type { Sink } from "../../../lib/sink.js";
import { Unseen } from "../finding.js";
import { seen } from "../seen.js";
import type { FenceFacts, FenceLook } from "./fences.js";
import { type RedisReader, textOf } from "./redis-reader.js";

/** Keys that the server goes through in one step; fences of one step are read at the same time. */
const STEP_KEYS = 200;

/** Larger results are not fetched just to be compared. */
const COMPARED_BYTES_MAX = 2 ** 20;

export interface FenceReading {
  reader: RedisReader;
  /** Reads a result with its fence. */
  sink: Pick<Sink, "readResult">;
  /** About how many keys to go through at most. */
  scanKeys: number;
}

export async function readFences({ reader, sink, scanKeys }: FenceReading): Promise<FenceFacts> {
  const size = await seen(reader.read("DBSIZE"));
  const keys = size instanceof Unseen ? size : Number(size);
  const found = new Map<string, FenceLook>();
  let [cursor, scanned, large] = ["0", 0, 0];
  let stopped: string | undefined;
  do {
    try {
      const page = await reader.read("SCAN", cursor, "MATCH", "fence:*", "COUNT", `${STEP_KEYS}`);
      const [next, names] = page as [unknown, unknown[]];
      cursor = textOf(next);
      scanned += STEP_KEYS;
      const fresh = names.map(textOf).filter((name) => !found.has(name));
      for (const { isLarge, ...look } of await Promise.all(
        fresh.map((name) => lookAt(name, { reader, sink })),
      )) {
        found.set(look.fenceKey, look);
        if (isLarge) large += 1;
      }
      if (scanned >= scanKeys && cursor !== "0") stopped = "the bound was reached";
    } catch (error) {
      if (!(error instanceof FencekeeperError)) throw error;
      stopped = error.message;
    }
  } while (cursor !== "0" && stopped === undefined);
  if (!(keys instanceof Unseen)) scanned = Math.min(scanned, keys);
  return { looks: [...found.values()], scanned, keys, stopped, large };
}

type LookAt = FenceLook & { isLarge: boolean };

async function lookAt(
  fenceKey: string,
  { reader, sink }: Omit<FenceReading, "scanKeys">,
): Promise<LookAt> {
  const key = resultKeyOf(fenceKey);
  const nothing = { tokenText: undefined, fault: undefined, matches: undefined, isLarge: false };
  const unread = { fenceKey, key, ttlMs: undefined, resultTtlMs: undefined, ...nothing };
  if (key === undefined) return unread;
  const [ttlMs, resultTtlMs, isLarge] = await Promise.all([
    readTtl(reader, fenceKey),
    readTtl(reader, key),
    isTooLarge(reader, key),
  ]);
  const look = { ...unread, ttlMs, resultTtlMs, isLarge };
  if (isLarge) {
    return { ...look, tokenText: textOf(await reader.read("HGET", fenceKey, "token")) };
  }
  try {
    const { fence, value, matches } = await sink.readResult(key);
    return {
      ...look,
      tokenText: fence?.tokenText,
      matches: value === undefined ? undefined : matches,
    };
  } catch (error) {
    if (error instanceof FenceCorruptError || error instanceof ResultTypeError) {
      return { ...look, fault: error.message };
    }
    throw error;
  }
}

async function readTtl(reader: RedisReader, key: string): Promise<number | undefined> {
  const ttlMs = Number(await reader.read("PTTL", key));
  return ttlMs < 0 ? undefined : ttlMs;
}

/** Another type than a string has no such length; the script says what it is. */
async function isTooLarge(reader: RedisReader, key: string): Promise<boolean> {
  const bytes = await seen(reader.read("STRLEN", key));
  return !(bytes instanceof Unseen) && Number(bytes) > COMPARED_BYTES_MAX;
}
