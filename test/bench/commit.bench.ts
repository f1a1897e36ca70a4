/**
 * Fenced commits against plain SET, for values of 100 bytes, 10 KB and 1 MB and several numbers in flight. Both go to
 * one server over the same kind of connection, in rounds that take turns, so that a machine that is slow for a while is
 * slow for both. Each commit has a token of its own, above the last one at its key, as the commits of claims have.
 *
 * The least that a fenced commit can cost with this client is measured beside them: a copy of the value, its digest and
 * one call of a script that does nothing at all, with the same keys and arguments; larger values go by a SET before it.
 * `npm run bench -- commit`; FENCEKEEPER_ROUNDS=n plays so many rounds.
 */
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { clientOptions } from "../../lib/redis/client/client-options.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { parseRedisUrl } from "../../lib/redis/redis-url.js";
import { keysOf } from "../../lib/redis/request-form.js";
import { STAGE_FROM_BYTES } from "../../lib/redis/scripted-sink.js";
import { storedValue } from "../../lib/redis/value-form.js";
import type { Sink } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { startRedis, type TestRedis } from "../support/redis-for-test.js";

const ROUNDS = Number(process.env.FENCEKEEPER_ROUNDS ?? 15);
/** Each round lasts about so long, in milliseconds. */
const ROUND_MS = 150;

/** All values of a kind together, at the most: memory that is touched for the first time costs more than the write. */
const STORED_BYTES_MAX = 32_000_000;
const KEYS_MAX = 1_000;
/** Different values of each size. */
const VALUES = 16;

const CASES: [name: string, bytes: number, inFlight: number[], target: number][] = [
  ["100 B", 100, [1, 16, 64, 256], 0.85],
  ["10 KB", 10_000, [1, 16, 64, 256], 0.85],
  ["1 MB", 1_000_000, [1, 16], 0.9],
];

let redis: TestRedis;
let sink: Sink;
/** Two, so that nothing is found to be faster because it is another connection. */
let plain: Redis;
let again: Redis;
/** SHA-1 of a script that does nothing. */
let nothing = "";
let number = 0;

beforeAll(async () => {
  redis = await startRedis();
  const name = "bench";
  const limits = { connectTimeoutMs: 2_000, replyTimeoutMs: 30_000 };
  const address = parseRedisUrl(redis.url);
  const { scripts: _, ...same } = clientOptions({
    ...{ address, name, ...limits, tls: undefined, natMap: undefined },
  });
  plain = new Redis({ ...same, ...address.hosts[0] });
  again = new Redis({ ...same, ...address.hosts[0] });
  await Promise.all([plain.connect(), again.connect()]);
  nothing = String(await plain.script("LOAD", "return {'committed', '1'}"));
  sink = openRedisSink({ url: redis.url, timeoutMs: 60_000 });
});
afterAll(async () => {
  await sink.close();
  plain.disconnect();
  again.disconnect();
  await redis.stop();
});

type Write = (index: number, value: Buffer) => Promise<unknown>;

const keyOf = (index: number, { length }: Buffer) =>
  index % Math.min(KEYS_MAX, Math.ceil(STORED_BYTES_MAX / length));

const commit: Write = (index, value) => {
  const key = `fenced:${keyOf(index, value)}`;
  const token = makeToken({ era: 0, generation: 1n, sequence: index });
  return sink.commitResult({ key, job: "bench", token, value, holder: "bench" });
};
const least: Write = async (index, value) => {
  const key = `least:${keyOf(index, value)}`;
  const { text } = makeToken({ era: 0, generation: 1n, sequence: index });
  const { bytes, digest } = await storedValue(value, undefined);
  const isApart = bytes.length >= STAGE_FROM_BYTES;
  const staged = isApart ? plain.set(key, bytes) : undefined;
  const order = String(index).padStart(16, "0");
  const said = [text, "bench", isApart ? "" : bytes, await digest, "", "once", "bench", order];
  await plain.callBuffer("EVALSHA", [nothing, 3, ...keysOf(key), ...said]);
  await staged;
};
const setOn =
  (client: Redis): Write =>
  (index, value) =>
    client.set(`plain:${keyOf(index, value)}`, value);

/** Writes a second, with so many in flight all the time. */
async function rateOf(write: Write, values: Buffer[], inFlight: number): Promise<number> {
  const startMs = performance.now();
  const endMs = startMs + ROUND_MS;
  let done = 0;
  const lane = async () => {
    while (performance.now() < endMs) {
      number += 1;
      await write(number, values[number % VALUES] as Buffer);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return done / ((performance.now() - startMs) / 1_000);
}

it.each(CASES)("measures %s", { timeout: 600_000 }, async (name, bytes, numbers, target) => {
  const values = Array.from({ length: VALUES }, () => randomBytes(bytes));
  for (const inFlight of numbers) {
    const kinds = [commit, setOn(plain), setOn(again), least];
    const rates: number[][] = kinds.map(() => []);
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const [kind, write] of kinds.entries()) {
        const rate = await rateOf(write, values, inFlight);
        if (round >= 0) rates[kind]?.push(rate);
      }
    }
    const [fenced = 0, set = 0, other = 0, bare = 0] = rates.map(median);
    const ratio = fenced / set;
    const noise = other / set;
    console.log(
      `${name.padEnd(6)} ${String(inFlight).padStart(3)} in flight: ${thousands(fenced)} commits, ` +
        `${thousands(set)} SETs a second, ratio ${ratio.toFixed(2)} (target ${target}; ` +
        `the least ${(bare / set).toFixed(2)}; SET to SET ${noise.toFixed(2)})`,
    );
    expect(rates.flat()).toHaveLength(kinds.length * ROUNDS);
  }
});

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const thousands = (rate: number) => `${(rate / 1_000).toFixed(rate < 10_000 ? 2 : 1)} k`;
