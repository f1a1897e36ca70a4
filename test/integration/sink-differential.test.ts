/**
 * Goal: the simulated store answers exactly as the Lua scripts on a real Redis do, so that what a simulation shows is
 * true of the sink. Method: both play the same random history, and after each step the answers, what is stored, and
 * the time to live are compared. Redis has a clock of its own: it is read before and after each step, one simulated
 * store lives at the earlier times and one at the later, and times in Redis's answers lie between theirs. No time to
 * live ends during a history; the simulated stores are asked about later times instead.
 * FENCEKEEPER_SEED=n plays the same histories again.
 */
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { fenceKeyOf } from "../../lib/redis/fence-key.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { storedJob } from "../../lib/redis/stored-form.js";
import type {
  AdvanceAnswer,
  CommitAnswer,
  CommitRequest,
  ReadAnswer,
  Sink,
} from "../../lib/sink.js";
import { type FencingToken, makeToken, parseToken } from "../../lib/token.js";
import { type AcceptedWrite, SimulatedStore } from "../../recipes/testing/index.js";

const HISTORIES = 90;
const STEPS_MAX = 60;
const SEED = Number(process.env.FENCEKEEPER_SEED ?? Date.now() % 2 ** 31);
const AGAIN = `FENCEKEEPER_SEED=${SEED} npx vitest run test/integration/sink-differential.test.ts`;

let redis: Redis;
let sink: Sink;
let histories = 0;

beforeAll(() => {
  redis = new Redis(inject("redis"));
  // long enough that nothing is ever asked for twice, which would be another history
  sink = openRedisSink({ url: inject("redis"), timeoutMs: 60_000 });
});

afterAll(async () => {
  await sink?.close();
  await redis?.quit();
});

const DEEDS = ["advance", "commit", "read", "set", "delete", "expire", "forget"] as const;

/** One step. Each deed takes what it needs; key, job, token and value are numbers of those of the history. */
interface Step {
  does: (typeof DEEDS)[number];
  key: number;
  job: number;
  /** undefined: the token at which the fence of the key stands. */
  token: number | undefined;
  holder: string | undefined;
  value: number;
  ttlMs: number | undefined;
  mode: "once" | "update" | undefined;
  /** undefined: now. */
  atMs: number | undefined;
}

interface History {
  jobs: string[];
  tokens: FencingToken[];
  values: (Uint8Array | string)[];
  steps: Step[];
}

/** A step with what it names. */
type Call = Omit<Step, "key" | "job" | "token" | "value" | "atMs"> & {
  key: string;
  job: string;
  token: FencingToken;
  value: Uint8Array | string;
  atMs: number;
};

type Answer = AdvanceAnswer | CommitAnswer | ReadAnswer | undefined;

/** From when to when, by the clock of Redis. */
type Span = readonly [beforeMs: number, afterMs: number];

const KEYS = ["result", "{tag}ged", "résultat 🔑"];
const LONG_JOB = "j".repeat(65);
const JOBS = ["job", "задание 🔑", "j".repeat(64), LONG_JOB, storedJob(LONG_JOB), "é".repeat(256)];
const HOLDERS = [
  "",
  "host:1",
  "h".repeat(64),
  "h".repeat(65),
  "🔑".repeat(17),
  `${"h".repeat(63)}é`,
  `${"h".repeat(62)}🔑`,
  "half \ud83d of a pair",
];
/** Values that are the same or not, and could be taken for the other; a history has those of one line. */
const VALUES = [
  ["first", Buffer.from("first"), "second"],
  ["", Buffer.alloc(0), "0"],
  ["\ufffd", Buffer.from([0xef, 0xbf, 0xbd]), Buffer.from([0xff])],
  ["é", "e\u0301", Buffer.from("é", "latin1")],
  ["v".repeat(5_000), Buffer.alloc(5_000, "v"), "v".repeat(5_001)],
];
const HOUR_MS = 3_600_000;
const TTLS = [HOUR_MS, 1_000 * HOUR_MS, 9_000_000_000_000_000];
const LONG_AGO_MS = 1;
const FAR_OFF_MS = 4_102_444_800_000;

const tokens = (): fc.Arbitrary<FencingToken> =>
  fc
    .record({
      era: fc.constantFrom(0, 9, 10, 99_999),
      generation: fc.constantFrom(0n, 9n, 10n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n),
      sequence: fc.constantFrom(0, 9, 10, 1_000_000_000, 2_147_483_646),
    })
    .map(makeToken);

const steps = (): fc.Arbitrary<Step> =>
  fc.record({
    does: fc.oneof(
      { weight: 6, arbitrary: fc.constant("advance" as const) },
      { weight: 12, arbitrary: fc.constant("commit" as const) },
      { weight: 4, arbitrary: fc.constantFrom(...DEEDS) },
    ),
    key: fc.constantFrom(0, 0, 0, 1, 2),
    job: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1),
    token: fc.option(fc.nat(4), { nil: undefined, freq: 2 }),
    holder: fc.option(fc.constantFrom(...HOLDERS), { nil: undefined }),
    value: fc.nat(2),
    ttlMs: fc.option(fc.constantFrom(...TTLS), { nil: undefined, freq: 2 }),
    mode: fc.constantFrom("once", "update", "update", undefined),
    atMs: fc.constantFrom(undefined, LONG_AGO_MS, FAR_OFF_MS),
  });

const randomHistory: fc.Arbitrary<History> = fc.record({
  jobs: fc.uniqueArray(fc.constantFrom(...JOBS), { minLength: 2, maxLength: 2 }),
  tokens: fc.array(tokens(), { minLength: 5, maxLength: 5 }),
  values: fc.constantFrom(...VALUES),
  steps: fc.array(steps(), { minLength: 1, maxLength: STEPS_MAX, size: "max" }),
});

/** The bytes of a call are its own, so that they can be spoiled after it. */
const copyOf = (value: Uint8Array | string) =>
  typeof value === "string" ? value : Buffer.from(value);

function requestOf({ key, job, token, holder, value, ttlMs, mode }: Call): CommitRequest {
  return {
    ...{ key, job, token, value: copyOf(value) },
    ...(holder !== undefined && { holder }),
    ...(ttlMs !== undefined && { ttlMs }),
    ...(mode !== undefined && { mode }),
  };
}

/** A value that the caller changes after the call, which must have taken a copy. */
function spoil(value: Uint8Array | string | undefined): void {
  if (value instanceof Uint8Array) value.fill(0);
}

function simulated(store: SimulatedStore, call: Call, nowMs: number): Answer {
  const request = requestOf(call);
  try {
    switch (call.does) {
      case "advance":
        return store.advanceFence(request, nowMs);
      case "commit":
        return store.commitResult(request, nowMs);
      case "read":
        return store.readResult(call.key, nowMs);
      case "set":
        store.setValue(call.key, request.value);
        return undefined;
      case "delete":
        store.deleteValue(call.key);
        return undefined;
      case "expire":
        store.expireAt(call.key, call.atMs, nowMs);
        return undefined;
      case "forget":
        store.forget();
        return undefined;
    }
  } finally {
    spoil(request.value);
  }
}

async function real(call: Call, keys: string[]): Promise<Answer> {
  const request = requestOf(call);
  switch (call.does) {
    case "advance":
      return sink.advanceFence(request);
    case "commit":
      return sink.commitResult(request);
    case "read":
      return sink.readResult(call.key);
    case "set":
      await redis.set(call.key, copyOf(call.value) as Buffer);
      return undefined;
    case "delete":
      await redis.del(call.key);
      return undefined;
    case "expire":
      await redis.pexpireat(call.key, call.atMs);
      return undefined;
    case "forget":
      await forget(keys);
      return undefined;
  }
}

/** The server is shared: what a history made is all that it may forget. */
async function forget(keys: string[]): Promise<void> {
  await redis.del(...keys, ...keys.map(fenceKeyOf));
}

/** An answer without its times, and the times by their names. */
function takeApart(answer: Answer): { rest: unknown; times: Map<string, number> } {
  const times = new Map<string, number>();
  const visit = (part: unknown, path: string): unknown => {
    if (typeof part !== "object" || part === null || Buffer.isBuffer(part)) return part;
    const entries = Object.entries(part).map(([name, field]) => {
      const isTime = name === "ageMs" || name.endsWith("AtMs") || name === "atMs";
      if (isTime) times.set(`${path}${name}`, field);
      return [name, isTime ? "a time" : visit(field, `${path}${name}.`)];
    });
    return Object.fromEntries(entries);
  };
  return { rest: visit(answer, ""), times };
}

/** Compares an answer of Redis, given in the span, with the ones that are simulated at its two ends. */
function compareAnswers(answer: Answer, early: Answer, late: Answer, span: Span): void {
  const [beforeMs, afterMs] = span;
  const found = takeApart(answer);
  const [first, last] = [takeApart(early), takeApart(late)];
  for (const { rest } of [first, last]) {
    // the comparison that explains itself takes longer, thousands of times
    if (!isDeepStrictEqual(rest, found.rest)) expect(rest, "simulated").toStrictEqual(found.rest);
  }
  for (const [name, ms] of found.times) {
    const firstMs = first.times.get(name) ?? Number.NaN;
    const lastMs = last.times.get(name) ?? Number.NaN;
    // an age is least from the end of the commit's span to the start of this one, and most the other way round
    const lengthMs = afterMs - beforeMs;
    const isAge = name.endsWith("ageMs");
    const [least, most] = isAge ? [lastMs - lengthMs, firstMs + lengthMs] : [firstMs, lastMs];
    const isWithin = least <= ms && ms <= most;
    if (!isWithin) expect.fail(`${name} is ${ms}; simulated, it is from ${least} to ${most}`);
  }
}

const msOf = ([seconds, micros]: [number, number]) => seconds * 1_000 + Math.floor(micros / 1_000);

async function serverMs(): Promise<number> {
  return msOf((await redis.time()) as unknown as [number, number]);
}

/** One history, played by Redis and by the two simulated stores. */
class Play {
  readonly early = new SimulatedStore();
  readonly late = new SimulatedStore();
  readonly keys: string[];
  readonly committed: AcceptedWrite[] = [];
  #nowMs = 0;

  constructor(
    readonly history: History,
    readonly seen: Map<string, number>,
  ) {
    const prefix = `sink-differential:${process.pid}:${histories++}:`;
    this.keys = KEYS.map((key) => `${prefix}${key}`);
  }

  async begin(): Promise<void> {
    this.#nowMs = await serverMs();
  }

  async step(step: Step): Promise<void> {
    const call = this.#callOf(step);
    const beforeMs = this.#nowMs;
    const answer = await real(call, this.keys);
    const afterMs = await serverMs();
    const early = simulated(this.early, call, beforeMs);
    const late = simulated(this.late, call, afterMs);
    compareAnswers(answer, early, late, [beforeMs, afterMs]);
    this.#note(call, answer);
    for (const stored of call.does === "forget" ? this.keys : [call.key]) {
      await this.#compareStored(stored, afterMs);
    }
  }

  /** Once more at the end, key by key: a step changed no other key than its own. */
  async end(): Promise<void> {
    for (const key of this.keys) await this.#compareStored(key, this.#nowMs);
    expect(this.early.accepted).toStrictEqual(this.committed);
    expect(this.late.accepted).toStrictEqual(this.committed);
  }

  #callOf(step: Step): Call {
    const { jobs, tokens, values } = this.history;
    const key = this.keys[step.key] ?? "";
    const stands = this.early.readResult(key, this.#nowMs).fence?.tokenText;
    const held = stands === undefined ? tokens[0] : parseToken(stands);
    return {
      ...step,
      key,
      job: jobs[step.job] ?? "",
      token: (step.token === undefined ? held : tokens[step.token]) as FencingToken,
      value: values[step.value] ?? "",
      atMs: step.atMs ?? this.#nowMs,
    };
  }

  /** What is stored at a key, and until when; leaves the time that it is now. */
  async #compareStored(key: string, beforeMs: number): Promise<void> {
    const read = await sink.readResult(key);
    const replies = await redis.pipeline().time().pttl(key).time().exec();
    const [afterMs = 0, laterMs = 0] = [replies?.[0], replies?.[2]].map((reply) =>
      msOf(reply?.[1] as [number, number]),
    );
    const [early, late] = [
      this.early.readResult(key, beforeMs),
      this.late.readResult(key, afterMs),
    ];
    compareAnswers(read, early, late, [beforeMs, afterMs]);
    for (const { value } of [early, late]) spoil(value);
    const { committed } = read.fence ?? {};
    if (committed) {
      const atMs = committed.committedAtMs + committed.ageMs;
      const isOneTime = beforeMs <= atMs && atMs <= afterMs;
      expect(isOneTime, "an age is from the time of the answer").toBe(true);
    }
    this.#compareTimeToLive(key, replies?.[1]?.[1] as number, [afterMs, laterMs]);
    this.#nowMs = laterMs;
  }

  #compareTimeToLive(key: string, ttlMs: number, [beforeMs, afterMs]: Span): void {
    const isThere = (store: SimulatedStore, nowMs: number) =>
      store.readResult(key, nowMs).value !== undefined;
    const { early, late } = this;
    const forever = [early, late].map((store) => isThere(store, Number.POSITIVE_INFINITY));
    expect(forever, "whether the value is kept").toEqual([ttlMs === -1, ttlMs === -1]);
    if (ttlMs < 0) return;
    this.#count("a value with a time to live");
    expect(isThere(late, beforeMs + ttlMs), "there until its time to live ends").toBe(true);
    expect(isThere(early, afterMs + ttlMs + 1), "gone when its time to live ended").toBe(false);
  }

  #count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  /** Counts what the history came to, and keeps what Redis accepted. */
  #note(call: Call, answer: Answer): void {
    const { key, value, token } = call;
    if (answer === undefined) this.#count(call.does);
    else if ("outcome" in answer) {
      this.#count(`${call.does}: ${answer.outcome}`);
      if (answer.outcome === "committed") {
        const { revision } = answer;
        this.committed.push({ key, tokenText: token.text, value: value.toString(), revision });
        if (revision > 2) this.#count("third revision");
      }
      if ("present" in answer && answer.present)
        this.#count(`${call.does}: ${answer.outcome} present`);
    }
    const { fence, value: stored, matches } = this.early.readResult(key, this.#nowMs);
    if (matches !== undefined)
      this.#count(`${stored ? "a value" : "no value"}, matches: ${matches}`);
    if (fence === undefined && stored) this.#count("a value without a fence");
    if (fence?.state === "open" && fence.committed)
      this.#count("an older result under an open fence");
    if (fence && fence.staleCount > 1) this.#count("second stale write");
  }
}

/** What the histories must have come to, or they show little. */
const MUST_BE_SEEN = [
  ...["advanced", "current", "advanced present", "current present"].map((it) => `advance: ${it}`),
  ...["stale", "foreign"].flatMap((it) => [`advance: ${it}`, `commit: ${it}`]),
  ...["committed", "duplicate", "conflict"].map((outcome) => `commit: ${outcome}`),
  ...["set", "delete", "expire", "forget", "third revision", "second stale write"],
  ...["a value, matches: true", "a value, matches: false", "no value, matches: false"],
  ...[
    "a value with a time to live",
    "a value without a fence",
    "an older result under an open fence",
  ],
];

it("answers as the scripts do in random histories, step by step and field by field", async () => {
  const seen = new Map<string, number>();
  const property = fc.asyncProperty(fc.noBias(randomHistory), async (history) => {
    const play = new Play(history, seen);
    try {
      await play.begin();
      for (const step of history.steps) await play.step(step);
      await play.end();
    } finally {
      await forget(play.keys);
    }
  });
  const limits = { numRuns: HISTORIES, interruptAfterTimeLimit: 60_000 };
  const details = await fc.check(property, { seed: SEED, ...limits });
  expect(details.failed, `${AGAIN}\n${fc.defaultReportMessage(details)}`).toBe(false);
  if (details.interrupted) return;
  for (const what of MUST_BE_SEEN) expect([...seen.keys()], AGAIN).toContain(what);
});
