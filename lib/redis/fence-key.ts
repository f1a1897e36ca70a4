/**
 * The key of the fence beside a result key: always in the same slot of a Redis Cluster, and never shared by two
 * result keys. Pure.
 */
import { ResultKeyError } from "../errors.js";

const PREFIX = "fence:";

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
  if (key.startsWith(PREFIX)) {
    throw new ResultKeyError(
      `the result key ${shown(key)} begins with "${PREFIX}", which is kept for fences; choose another name`,
    );
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

/** What Redis Cluster hashes instead of the whole key: the text from the first `{` to the next `}`, if not empty. */
function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  if (open < 0) return undefined;
  const close = key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

function shown(key: string): string {
  return JSON.stringify(key.length > 100 ? `${key.slice(0, 100)}…` : key);
}
