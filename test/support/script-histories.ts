/**
 * Random calls of the scripts, and what strangers do in between, on a few keys: good ones, ones that are late, sent
 * again or meant for another job, and ones whose arguments are not as they must be.
 */
import { fenceKeyOf, floorKeyOf, stageKeyOf } from "../../lib/redis/fence-key.js";
import type { ScriptName } from "../../lib/redis/script-files.js";
import { digestOf } from "../../lib/redis/stored-form.js";
import { makeToken } from "../../lib/token.js";
import type { Random } from "../../recipes/testing/random.js";

/** What happens next at a store. */
export type Deed =
  | { kind: "script"; script: ScriptName; keys: string[]; values: (string | Buffer)[] }
  /** A plain command of a stranger's. */
  | { kind: "command"; words: [string, ...(string | Buffer)[]] };

const HOUR_MS = 3_600_000;

const TOKENS = [
  makeToken({ era: 0, generation: 9n, sequence: 2_147_483_646 }),
  makeToken({ era: 0, generation: 10n, sequence: 0 }),
  makeToken({ era: 0, generation: 10n, sequence: 1 }),
  makeToken({ era: 0, generation: 2n ** 53n + 1n, sequence: 9 }),
  makeToken({ era: 1, generation: 0n, sequence: 10 }),
].map(({ text }) => text);

const NOT_TOKENS = ["", "1", "00000.00000000000000000007.2147483647", `${TOKENS[0]}0`];
const JOBS = ["job", "job", "job", "job", "job", "задание 🔑"];
const NOT_JOBS = ["", "j".repeat(65)];
const HOLDERS = ["", "host:1", "🔑".repeat(16)];
const VALUES = [
  ...["first", "second", "", "\ufffd", "v".repeat(3_000)].map((text) => Buffer.from(text)),
  Buffer.from([0xff]),
];
const TTLS = ["", "", String(HOUR_MS), "9007199254740991"];
const NOT_MS = ["0", "-1", "1.5", "9007199254740992", "1e3", "abc"];
const RETENTIONS = ["", "", "", String(HOUR_MS)];
const NOT_DIGESTS = ["", "A".repeat(64), "a".repeat(63)];

/** Share of calls with an argument that is not as it must be. */
const BAD_SHARE = 0.03;

export class ScriptHistory {
  readonly keys: string[];
  #order = 0;
  #stages = 0;

  constructor(
    readonly random: Random,
    prefix: string,
  ) {
    this.keys = [`${prefix}a`, `{${prefix}}b`];
  }

  /** Every key that anything of this history may be at, without the stages. */
  get places(): string[] {
    return this.keys.flatMap((key) => [key, fenceKeyOf(key), floorKeyOf(key)]);
  }

  next(): Deed[] {
    const { random } = this;
    const pick = random.next();
    if (pick < 0.3) return [this.#advance()];
    if (pick < 0.62) return this.#commit();
    if (pick < 0.7) return this.#batch();
    if (pick < 0.77) return [this.#invalidate()];
    if (pick < 0.82) return [this.#read()];
    if (pick < 0.86) return [this.#raiseFloor()];
    if (pick < 0.9) return [this.#dropFence()];
    return [this.#stranger()];
  }

  #advance(): Deed {
    const values = [...this.#identity(), this.#alive(), this.#policy(), this.#flag()];
    return this.#script("advanceFence", this.#key(), values);
  }

  /** With a staged value now and then, which is put there first; or was forgotten. */
  #commit(): Deed[] {
    const { random } = this;
    const key = this.#key();
    const [token, job, holder] = this.#identity();
    const value = random.pick(VALUES);
    const values = [
      ...[token, job, value, this.#digestOf(value), this.#ttl(), this.#mode(), holder],
      ...[this.#nextOrder(), this.#flag(), this.#alive(), this.#retention()],
      ...[this.#policy(), this.#encoding(), this.#flag()],
    ];
    const call = this.#script("commitResult", key, values);
    if (!random.chance(0.25) || call.kind !== "script") return [call];
    this.#stages += 1;
    const stage = stageKeyOf(key, String(this.#stages));
    const staged = { ...call, keys: [...call.keys, stage] };
    const put: Deed = { kind: "command", words: ["SET", stage, value, "PX", String(HOUR_MS)] };
    return random.chance(0.9) ? [put, staged] : [staged];
  }

  /** Sent again at once now and then, as after a lost reply. */
  #batch(): Deed[] {
    const { random } = this;
    const keys = random.chance(0.7) ? this.keys : [this.#key()];
    const order = this.#nextOrder();
    const [token, job, holder] = this.#identity();
    const values: (string | Buffer)[] = [token, job, holder, this.#mode(), order];
    values.push(this.#retention(), this.#policy(), this.#flag());
    for (const _ of keys) {
      const value = random.pick(VALUES);
      const isGuard = random.chance(0.2);
      const isDeleted = !isGuard && random.chance(0.3);
      values.push(isDeleted ? "" : value);
      values.push(isGuard ? "guard" : isDeleted ? "" : this.#digestOf(value));
      values.push(isDeleted ? "" : this.#ttl(), this.#encoding());
      values.push(this.#flag(), this.#alive());
    }
    if (random.chance(BAD_SHARE)) values.pop();
    const places = keys.flatMap((key) => this.#keysOf(key));
    const batch: Deed = { kind: "script", script: "commitResults", keys: places, values };
    return random.chance(0.3) ? [batch, batch] : [batch];
  }

  #invalidate(): Deed {
    const values = [...this.#identity(), this.#nextOrder(), this.#flag(), this.#alive()];
    values.push(this.#retention(), this.#policy(), this.#flag());
    return this.#script("invalidateResult", this.#key(), values);
  }

  #read(): Deed {
    const keys = this.#keysOf(this.#key()).slice(0, 2);
    return { kind: "script", script: "readResult", keys, values: [] };
  }

  #raiseFloor(): Deed {
    const key = floorKeyOf(this.#key());
    return { kind: "script", script: "raiseFloor", keys: [key], values: [this.#token()] };
  }

  #dropFence(): Deed {
    const values = [this.#token(), this.#token(), this.#orBad(["", "1"], ["2"])];
    return this.#script("dropFence", this.#key(), values);
  }

  #stranger(): Deed {
    const { random } = this;
    const key = this.#key();
    const fence = fenceKeyOf(key);
    const deeds: [string, ...(string | Buffer)[]][] = [
      ["SET", key, random.pick(VALUES)],
      ["DEL", key],
      ["DEL", key, fence],
      ["DEL", fence],
      ["DEL", floorKeyOf(key)],
      ["PEXPIRE", fence, String(HOUR_MS)],
      ["PEXPIREAT", key, "1"],
      // what no fence may hold, and the fence that stays corrupt until somebody removes it
      ["HSET", fence, random.pick(FENCE_FIELDS), random.pick(NOT_FIELDS)],
      ["DEL", fence],
      ["DEL", key, fence],
    ];
    return { kind: "command", words: random.pick(deeds) };
  }

  #script(script: ScriptName, key: string, values: (string | Buffer)[]): Deed {
    const keys = this.#keysOf(key);
    return { kind: "script", script, keys, values: withoutEnd(script, values) };
  }

  #keysOf(key: string): string[] {
    return [key, fenceKeyOf(key), floorKeyOf(key)];
  }

  #key(): string {
    return this.random.chance(0.8) ? (this.keys[0] ?? "") : (this.keys[1] ?? "");
  }

  #identity(): [string, string, string] {
    return [this.#token(), this.#orBad(JOBS, NOT_JOBS), this.#orBad(HOLDERS, ["h".repeat(65)])];
  }

  #token(): string {
    return this.#orBad(TOKENS, NOT_TOKENS);
  }

  #alive(): string {
    return this.#orBad(["", "", "", ...TOKENS], ["1"]);
  }

  #policy(): string {
    return this.#orBad(["", "", "", "enforce", "observe"], ["of"]);
  }

  #mode(): string {
    return this.#orBad(["once", "update", "update"], ["", "Once"]);
  }

  #ttl(): string {
    return this.#orBad(TTLS, NOT_MS);
  }

  #retention(): string {
    return this.#orBad(RETENTIONS, NOT_MS);
  }

  #encoding(): string {
    return this.#orBad(["", "", "", "gzip"], ["e".repeat(65)]);
  }

  #flag(): string {
    return this.#orBad(["", "", "1"], ["0"]);
  }

  #digestOf(value: Buffer): string {
    return this.#orBad([digestOf(value)], NOT_DIGESTS);
  }

  /** Mostly a later one, now and then the last one again, an earlier one, or none. */
  #nextOrder(): string {
    const { random } = this;
    const pick = random.next();
    if (pick < 0.15) return "";
    if (pick < 0.18) return this.#orBad(["1234"], ["1".repeat(17)]);
    if (pick < 0.7) this.#order += 1;
    const number = pick < 0.85 ? this.#order : random.whole(0, this.#order);
    return String(number).padStart(16, "0");
  }

  #orBad<T>(good: readonly T[], bad: readonly T[]): T {
    return this.random.pick(this.random.chance(BAD_SHARE) ? bad : good);
  }
}

const FENCE_FIELDS = ["token", "job", "state", "digest", "revision", "order", "stale", "observed"];
const NOT_FIELDS = ["", "-1", "x", "1".repeat(65)];

/** Scripts take fewer arguments too, where those at the end would be empty. */
function withoutEnd(script: ScriptName, values: (string | Buffer)[]): (string | Buffer)[] {
  const least = { advanceFence: 3, commitResult: 7, invalidateResult: 3 }[script as string];
  if (least === undefined) return values;
  const end = values.findLastIndex((value) => value.length > 0);
  return values.slice(0, Math.max(least, end + 1));
}
