/**
 * The keys beside a result key: its fence, the floor of its slot, and where a large value waits. All are in the same
 * slot of a Redis Cluster as the result, and no two results share a fence. Pure.
 */
import { ResultKeyError } from "../errors.js";
import { hashTagOf, slotOf, tagOfSlot } from "./slot.js";

const PREFIX = "fence:";
const FLOOR_PREFIX = "fence-floor:";
const STAGE_PREFIX = "fence-stage:";

/** The fences of all results, as a pattern for `SCAN`. */
export const FENCE_PATTERN = `${PREFIX}*`;

/**
 * The fence's key: `fence:{<key>}`, or `fence:<key>` where the key has a hash tag of its own.
 *
 * @throws ResultKeyError when the key is empty, not valid Unicode or a fence itself, or when no fence of it can be in
 *   the same slot and belong to it alone
 */
export function fenceKeyOf(key: string): string {
  if (typeof key !== "string" || key === "") {
    throw new ResultKeyError("the result key must be a text that is not empty");
  }
  if (!key.isWellFormed()) {
    throw new ResultKeyError(
      "the result key is not valid Unicode: it holds half of a surrogate pair",
    );
  }
  for (const kept of [PREFIX, FLOOR_PREFIX, STAGE_PREFIX]) {
    if (key.startsWith(kept)) {
      throw new ResultKeyError(
        `the result key ${shown(key)} begins with "${kept}", which is kept for fences; choose another name`,
      );
    }
  }
  const tag = hashTagOf(key);
  if (tag === undefined && key.includes("}")) {
    throw new ResultKeyError(
      `the result key ${shown(key)} holds "}" outside of a hash tag, so its fence cannot be in the same slot; ` +
        'leave the "}" out, or give the key a hash tag such as {name}',
    );
  }
  if (tag !== undefined && key === `{${tag}}`) {
    throw new ResultKeyError(
      `the result key ${shown(key)} is nothing but a hash tag, and its fence would be that of ${shown(tag)} too; ` +
        "add a name before or after the tag",
    );
  }
  return tag === undefined ? `${PREFIX}{${key}}` : `${PREFIX}${key}`;
}

/** The result's key, from that of its fence; undefined when it is not a fence's. */
export function resultKeyOf(fenceKey: string): string | undefined {
  if (!fenceKey.startsWith(PREFIX)) return undefined;
  const rest = fenceKey.slice(PREFIX.length);
  const wrapped = /^\{([^}]+)\}$/.exec(rest)?.[1];
  const key = wrapped ?? rest;
  return key !== "" && fenceKeyIfAny(key) === fenceKey ? key : undefined;
}

/** The key of the floor of a slot: what stands there for the fences that `compact` has removed. */
export function floorKeyOf(key: string): string {
  return `${FLOOR_PREFIX}{${tagOfSlot(slotOf(key))}}`;
}

/** Where a large value waits for its commit; the id makes it the only one of its name. */
export function stageKeyOf(key: string, id: string): string {
  return hashTagOf(key) === undefined
    ? `${STAGE_PREFIX}${id}:{${key}}`
    : `${STAGE_PREFIX}${id}:${key}`;
}

function fenceKeyIfAny(key: string): string | undefined {
  try {
    return fenceKeyOf(key);
  } catch {
    return undefined; // not a key that a result can have
  }
}

function shown(key: string): string {
  return JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}…` : key);
}
