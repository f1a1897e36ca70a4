/**
 * The fencing token: era, generation and sequence, ordered as integers in that order.
 * Pure; tokens are made by the claim recipe only, from the znode that holds the claim.
 */
import { GenerationError, SequenceExhaustedError, TokenError } from "./errors.js";

/** The largest era: five decimal digits. */
export const ERA_MAX = 99_999;

/**
 * The largest sequence that is ever granted. The counter is a signed 32-bit number that sticks at 2147483647 and
 * repeats there, so that number, and every negative one, is exhausted.
 */
export const SEQUENCE_MAX = 2_147_483_646;

const GENERATION_MAX = 9_223_372_036_854_775_807n;

/** Proof of which claim a write belongs to. Strictly increasing per job, fixed while its znode lives. */
export interface FencingToken {
  /** Operator's number, 0 to 99999: raised when a ZooKeeper ensemble is rebuilt or restored from a backup. */
  readonly era: number;
  /** The `czxid` of the claim path, 0 to 2^63 - 1: a claim path that is made anew always has a higher one. */
  readonly generation: bigint;
  /** What ZooKeeper appended to the contender's name, 0 to 2147483646. 0 is a legal first value. */
  readonly sequence: number;
  /** The canonical text, 37 characters, whose byte order is the tokens' order. */
  readonly text: string;
}

const CANONICAL = /^(\d{5})\.(\d{20})\.(\d{10})$/;

/** True for a sequence that must never be granted: the counter of its parent is at its end. */
export function isExhausted(sequence: number): boolean {
  return sequence < 0 || sequence > SEQUENCE_MAX;
}

/**
 * Makes a token from its three parts.
 *
 * @throws TokenError when a part is out of its range
 * @throws SequenceExhaustedError when the sequence is at the end of the counter
 */
export function makeToken(parts: {
  era: number;
  generation: bigint;
  sequence: number;
}): FencingToken {
  const { era, generation, sequence } = parts;
  if (!Number.isInteger(era) || era < 0 || era > ERA_MAX) {
    throw new TokenError(`the era must be a whole number from 0 to ${ERA_MAX}; it is ${era}`);
  }
  if (generation < 0n || generation > GENERATION_MAX) {
    throw new TokenError(`the generation must be from 0 to ${GENERATION_MAX}; it is ${generation}`);
  }
  if (!Number.isInteger(sequence)) {
    throw new TokenError(`the sequence must be a whole number; it is ${sequence}`);
  }
  if (isExhausted(sequence)) {
    throw new SequenceExhaustedError(
      `sequence ${sequence} is at the end of ZooKeeper's 32-bit counter, where numbers repeat. ` +
        "Let the claim path become empty and delete it; it is made anew with a higher generation",
    );
  }
  const text = [
    String(era).padStart(5, "0"),
    String(generation).padStart(20, "0"),
    String(sequence).padStart(10, "0"),
  ].join(".");
  return Object.freeze({ era, generation, sequence, text });
}

/**
 * Reads a token's canonical text, and nothing else: no sign, no spaces, no missing zeros.
 *
 * @throws TokenError when the text is not canonical
 */
export function parseToken(text: string): FencingToken {
  const match = CANONICAL.exec(text);
  if (match === null) {
    throw new TokenError(
      `${JSON.stringify(text.slice(0, 60))} is not a fencing token. The form is 5, 20 and 10 digits ` +
        "with dots between, as in 00000.00000000004294967298.0000000042",
    );
  }
  const [, era = "", generation = "", sequence = ""] = match;
  try {
    return makeToken({
      era: Number(era),
      generation: BigInt(generation),
      sequence: Number(sequence),
    });
  } catch (cause) {
    throw new TokenError(`${text} is not a fencing token: a part is out of its range`, { cause });
  }
}

/** Negative, zero or positive as `a` is older than, the same as or newer than `b`. */
export function compareTokens(a: FencingToken, b: FencingToken): number {
  if (a.era !== b.era) return a.era - b.era;
  if (a.generation !== b.generation) return a.generation < b.generation ? -1 : 1;
  return a.sequence - b.sequence;
}

/**
 * The generation from a `czxid` as the npm client gives it, a JavaScript number.
 *
 * @throws GenerationError when it is not a safe integer and so may have been rounded
 */
export function generationFromCzxid(czxid: number): bigint {
  if (!Number.isSafeInteger(czxid) || czxid < 0) {
    throw new GenerationError(
      `the claim path's czxid ${czxid} is beyond 2^53 - 1 and did not arrive exactly. ` +
        "This ZooKeeper ensemble has had more than two million leader epochs; rebuild it and raise the era",
    );
  }
  return BigInt(czxid);
}
