/**
 * Goes through the fences of a Redis server, up to a bound. Reads only.
 */
import {
  FenceCorruptError,
  FencekeeperError,
  ResultTypeError,
  SinkDeniedError,
  SinkFaultError,
} from "../../../lib/errors.js";
import { resultKeyOf } from "../../../lib/redis/fence-key.js";
import type { Sink } from "../../../lib/sink.js";
import { parseToken } from "../../../lib/token.js";
import { Unseen } from "../finding.js";
import { seen } from "../seen.js";
import type { FenceFacts, FenceLook } from "./fences.js";
import { type RedisReader, type RedisReaders, textOf } from "./redis-reader.js";

/** Keys that the server goes through in one step; fences of one step are read at the same time. */
const STEP_KEYS = 200;

/** Larger results are not fetched just to be compared. */
const COMPARED_BYTES_MAX = 2 ** 20;

export interface FenceReading {
  readers: RedisReaders;
  /** Reads a result with its fence. */
  sink: Pick<Sink, "readResult">;
  /** About how many keys to go through at most. */
  scanKeys: number;
}

type Look = FenceLook & { isLarge: boolean };

export async function readFences({ readers, sink, scanKeys }: FenceReading): Promise<FenceFacts> {
  /** By the fence's key, which a scan may give twice. */
  const found = new Map<string, Look | Unseen>();
  const passed: Pick<FenceFacts, "scanned" | "keys" | "stopped">[] = [];
  for (const reader of readers.servers) {
    const left = scanKeys - sum(passed.map(({ scanned }) => scanned));
    passed.push(await scan({ reader, readers, sink, scanKeys: left }, found));
  }
  const sizes = passed.map(({ keys }) => keys);
  const hiddenSize = sizes.find((size) => size instanceof Unseen);
  return {
    ...sorted([...found.values()]),
    scanned: sum(passed.map(({ scanned }) => scanned)),
    keys: hiddenSize ?? sum(sizes.map(Number)),
    stopped: passed.find(({ stopped }) => stopped !== undefined)?.stopped,
  };
}

/** The fences of one server. */
async function scan(
  { reader, readers, sink, scanKeys }: FenceReading & { reader: RedisReader },
  found: Map<string, Look | Unseen>,
): Promise<Pick<FenceFacts, "scanned" | "keys" | "stopped">> {
  const size = await seen(reader.read("DBSIZE"));
  const keys = size instanceof Unseen ? size : Number(size);
  let cursor = "0";
  let scanned = 0;
  let stopped: string | undefined;
  do {
    try {
      const page = await reader.read("SCAN", cursor, "MATCH", "fence:*", "COUNT", `${STEP_KEYS}`);
      const [next, names] = page as [unknown, unknown[]];
      const fresh = names.map(textOf).filter((name) => !found.has(name));
      const looks = await Promise.all(fresh.map((name) => tryToLookAt(name, readers, sink)));
      fresh.forEach((name, index) => {
        const look = looks[index];
        if (look !== undefined) found.set(name, look);
      });
      cursor = textOf(next);
      scanned += STEP_KEYS;
      if (scanned >= scanKeys && cursor !== "0") stopped = "the bound was reached";
    } catch (error) {
      if (!(error instanceof FencekeeperError)) throw error;
      stopped = error.message;
    }
  } while (cursor !== "0" && stopped === undefined);
  if (!(keys instanceof Unseen)) scanned = Math.min(scanned, keys);
  return { scanned, keys, stopped };
}

const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

function sorted(all: readonly (Look | Unseen)[]): Pick<FenceFacts, "looks" | "large" | "hidden"> {
  const looks = all.flatMap((look) => (look instanceof Unseen ? [] : look));
  const hidden = all.flatMap((look) => (look instanceof Unseen ? look.reason : []));
  const large = looks.filter(({ isLarge }) => isLarge).length;
  return { looks, large, hidden: { count: hidden.length, reason: hidden[0] ?? "" } };
}

/** What is refused for one key may be allowed for the next. */
async function tryToLookAt(
  fenceKey: string,
  reader: RedisReader,
  sink: FenceReading["sink"],
): Promise<Look | Unseen> {
  try {
    return await lookAt(fenceKey, reader, sink);
  } catch (error) {
    const refused = error instanceof SinkDeniedError || error instanceof SinkFaultError;
    if (refused) return new Unseen(error.message);
    throw error;
  }
}

async function lookAt(
  fenceKey: string,
  reader: RedisReader,
  sink: FenceReading["sink"],
): Promise<Look> {
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
  if (isLarge) return { ...look, ...(await readToken(reader, fenceKey)) };
  try {
    const { fence, value, matches } = await sink.readResult(key);
    const compared = value === undefined ? undefined : matches;
    return { ...look, tokenText: fence?.tokenText, matches: compared };
  } catch (error) {
    const wrong = error instanceof FenceCorruptError || error instanceof ResultTypeError;
    if (wrong) return { ...look, fault: error.message };
    throw error;
  }
}

/** Of a fence whose result stays where it is. */
async function readToken(
  reader: RedisReader,
  fenceKey: string,
): Promise<{ tokenText: string } | { fault: string }> {
  const text = textOf(await reader.read("HGET", fenceKey, "token"));
  const token = await seen((async () => parseToken(text))());
  return token instanceof Unseen ? { fault: token.reason } : { tokenText: text };
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
