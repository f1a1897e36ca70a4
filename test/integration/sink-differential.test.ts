/**
 * Goal: the simulated store answers exactly as the Lua scripts on a real Redis do, so that what a simulation shows is
 * true of the sink. Method: both play the same random calls, on many sets of keys at once, and replies and what is
 * stored are compared byte for byte. The scripts' clock is a key that the test sets, in place of TIME; it is the only
 * change that is made to them. No time to live ends while a history is played, but keys expire by a stranger's deed.
 * FENCEKEEPER_SEED=n plays the same calls again, FENCEKEEPER_OPERATIONS=n so many; 2,000,000 take some minutes.
 */
import { isDeepStrictEqual } from "node:util";
import { type ChainableCommander, Redis } from "ioredis";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { REPLY_CODES } from "../../lib/redis/replies.js";
import { SCRIPT_NAMES, type ScriptName, scriptText } from "../../lib/redis/script-files.js";
import { SimulatedStore } from "../../recipes/testing/index.js";
import { Random } from "../../recipes/testing/random.js";
import { type Deed, ScriptHistory } from "../support/script-histories.js";

const OPERATIONS = Number(process.env.FENCEKEEPER_OPERATIONS ?? 60_000);
const SEED = Number(process.env.FENCEKEEPER_SEED ?? Date.now() % 2 ** 31);
const AGAIN = [
  `FENCEKEEPER_SEED=${SEED} FENCEKEEPER_OPERATIONS=${OPERATIONS}`,
  "npx vitest run test/integration/sink-differential.test.ts",
].join(" ");

/** Histories that are played side by side. */
const LANES = 40;
/** What is stored is compared after each so many operations. */
const COMPARE_EVERY = 5;
const MS_PER_OPERATION = 7;
/** Deeds that a failure shows. */
const RECENT = 12;

const CLOCK = `sink-differential:${process.pid}:clock`;
const NOW = `redis.call('HMGET', '${CLOCK}', 'seconds', 'micros')`;

let redis: Redis;
const shas = new Map<ScriptName, string>();

beforeAll(async () => {
  redis = new Redis(inject("redis"));
  for (const name of SCRIPT_NAMES) {
    const text = scriptText(name).replaceAll("redis.call('TIME')", NOW);
    shas.set(name, String(await redis.script("LOAD", text)));
  }
});

afterAll(async () => {
  await redis?.del(CLOCK);
  await redis?.quit();
});

class Lane {
  readonly store = new SimulatedStore();
  readonly history: ScriptHistory;
  readonly #recent: Deed[] = [];

  /** No two lanes share a slot, and with it a floor. */
  constructor(random: Random, taken: Set<string>) {
    for (let number = taken.size; ; number += 1) {
      const prefix = `sink-differential:${process.pid}:${number}:`;
      this.history = new ScriptHistory(random, prefix);
      const { places } = this.history;
      if (places.some((place) => taken.has(place))) continue;
      for (const place of places) taken.add(place);
      return;
    }
  }

  /** The simulated answer; undefined to a stranger. */
  simulate(deed: Deed, nowMs: number): Buffer[] | undefined {
    this.#recent.push(deed);
    if (this.#recent.length > RECENT) this.#recent.shift();
    if (deed.kind === "script") return this.store.call(deed, nowMs);
    const { keyspace } = this.store;
    const [word, key = "", ...rest] = deed.words;
    const name = String(key);
    if (word === "SET") {
      const ttlMs = rest[1] === undefined ? Number.POSITIVE_INFINITY : Number(rest[2]);
      keyspace.setString(name, Buffer.from(rest[0] ?? ""), nowMs + ttlMs);
    } else if (word === "DEL") for (const each of [key, ...rest]) keyspace.delete(String(each));
    else if (word === "HSET")
      keyspace.setFields(name, { [String(rest[0])]: String(rest[1]) }, nowMs);
    else if (word === "PEXPIRE") keyspace.expireAt(name, nowMs + Number(rest[0]), nowMs);
    else keyspace.expireAt(name, Number(rest[0]), nowMs);
    return undefined;
  }

  /** How to play it again, and the last deeds. */
  get recently(): string {
    return [AGAIN, ...this.#recent.map(tell)].join("\n");
  }

  /** What is stored, as the simulation has it: of each place its content, and whether it expires. */
  stored(nowMs: number): unknown[] {
    const { keyspace } = this.store;
    return this.history.places.map((place) => {
      const hash = keyspace.hash(place, nowMs);
      const value = hash ? Object.fromEntries(hash) : keyspace.string(place, nowMs);
      const isThere = value !== undefined;
      const expires = isThere && keyspace.typeOf(place, Number.POSITIVE_INFINITY) === "none";
      return [
        typeof value === "object" && !Buffer.isBuffer(value) ? value : (value ?? null),
        expires,
      ];
    });
  }
}

function send(pipeline: ChainableCommander, deed: Deed): void {
  if (deed.kind === "command") {
    const [word, ...rest] = deed.words;
    pipeline.callBuffer(word, rest);
    return;
  }
  const { script, keys, values } = deed;
  pipeline.callBuffer("EVALSHA", [shas.get(script) ?? "", keys.length, ...keys, ...values]);
}

/** What is stored on the real one: one reply for each place. */
const STORED = `
local places = {}
for index, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local content = ''
  if kind == 'string' then content = redis.call('GET', key) end
  if kind == 'hash' then content = redis.call('HGETALL', key) end
  places[index] = {kind, content, redis.call('PTTL', key) >= 0 and '1' or '0'}
end
return places`;

type StoredPlace = [kind: Buffer, content: Buffer | Buffer[], expires: Buffer];

function storedOn(reply: unknown): unknown[] {
  return (reply as StoredPlace[]).map(([kind, content, expires]) => {
    const isHash = Array.isArray(content);
    const fields: Record<string, string> = {};
    for (let index = 0; isHash && index < content.length; index += 2) {
      fields[String(content[index])] = (content[index + 1] as Buffer).toString("latin1");
    }
    const value = String(kind) === "none" ? null : content;
    return [isHash ? fields : value, String(expires) === "1"];
  });
}

function tell(deed: Deed): string {
  const shown = (item: string | Buffer) => JSON.stringify(String(item).slice(0, 64));
  return deed.kind === "script"
    ? `${deed.script} ${deed.keys.map(shown).join(" ")} , ${deed.values.map(shown).join(" ")}`
    : deed.words.map(shown).join(" ");
}

it(`the simulated store answers as the scripts on a real Redis do, whatever is asked (seed ${SEED})`, {
  timeout: 120_000 + OPERATIONS,
}, async () => {
  const random = new Random(SEED);
  const taken = new Set<string>();
  const lanes = Array.from({ length: LANES }, () => new Lane(random, taken));
  const seen = new Map<string, number>();
  let nowMs = Date.UTC(2026, 0, 1);
  let played = 0;

  const round = async (compares: boolean) => {
    nowMs += MS_PER_OPERATION;
    const pipeline = redis.pipeline();
    const seconds = String(Math.floor(nowMs / 1_000));
    pipeline.hset(CLOCK, { seconds, micros: String((nowMs % 1_000) * 1_000) });
    const expected: [lane: Lane, replies: (Buffer[] | undefined)[]][] = lanes.map((lane) => {
      const simulated = lane.history.next().map((deed) => {
        send(pipeline, deed);
        const reply = lane.simulate(deed, nowMs);
        if (deed.kind === "script") count(seen, deed.script, reply);
        return reply;
      });
      const { places } = lane.history;
      if (compares) pipeline.callBuffer("EVAL", [STORED, places.length, ...places]);
      return [lane, simulated];
    });
    const replies = (await pipeline.exec()) ?? [];
    let at = 1;
    for (const [lane, simulated] of expected) {
      for (const reply of simulated) {
        const [error, got] = replies[at++] ?? [];
        if (error) fail(lane, `Redis answered with ${error}`);
        if (reply !== undefined && !sameReply(reply, got)) {
          fail(lane, `Redis ${texts(got)} simulated ${texts(reply)}`);
        }
        played += 1;
      }
      if (!compares) continue;
      const [found, stored] = [storedOn(replies[at++]?.[1]), lane.stored(nowMs)];
      // the comparison that explains itself takes long
      if (!isDeepStrictEqual(found, stored)) expect(found, lane.recently).toEqual(stored);
    }
  };
  for (let number = 1; played < OPERATIONS; number += 1) await round(number % COMPARE_EVERY === 0);

  for (const lane of lanes) await redis.del(...lane.history.places);
  const missing = SCRIPT_NAMES.flatMap((script) =>
    REPLY_CODES[script].map((code) => `${script}: ${code}`),
  ).filter((name) => !seen.has(name) && !UNSEEN.has(name));
  expect(missing, `replies that ${played} operations never came to; ${AGAIN}`).toEqual([]);
});

/** What these histories cannot come to: all may do everything, and nobody puts a list at a result's key. */
const UNSEEN = new Set(
  SCRIPT_NAMES.flatMap((script) => [`${script}: noperm`, `${script}: wrongtype`]).concat(
    "raiseFloor: corrupt",
  ),
);

function fail(lane: Lane, what: string): never {
  throw new Error(`${what}\n${lane.recently}`);
}

function sameReply(expected: Buffer[], got: unknown): boolean {
  return (
    Array.isArray(got) &&
    got.length === expected.length &&
    got.every((item, index) => Buffer.isBuffer(item) && item.equals(expected[index] as Buffer))
  );
}

function texts(reply: unknown): string {
  return Array.isArray(reply) ? JSON.stringify(reply.map(String)) : String(reply);
}

function count(seen: Map<string, number>, script: ScriptName, reply: Buffer[] | undefined): void {
  const name = `${script}: ${reply?.[0]}`;
  seen.set(name, (seen.get(name) ?? 0) + 1);
}
