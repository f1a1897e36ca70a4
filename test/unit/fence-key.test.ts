/**
 * Where the fence of a result is kept: in the same slot as the result, and its alone. The slot function below is the
 * one of the Redis Cluster specification, written apart from the code under test.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { ResultKeyError } from "../../lib/errors.js";
import { fenceKeyOf, resultKeyOf } from "../../lib/redis/fence-key.js";

/** CRC16, XMODEM variant. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
    }
  }
  return crc;
}

function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  return crc16(Buffer.from(hashed)) % 16384;
}

/** Keys rich in braces, spaces and non-ASCII characters. */
const anyKey = fc
  .array(fc.constantFrom("{", "}", "a", "b", ":", " ", "é", "🔑", "fence:", "\0"), {
    minLength: 1,
    maxLength: 8,
  })
  .map((parts) => parts.join(""));

const acceptedKey = anyKey.filter((key) => {
  try {
    fenceKeyOf(key);
    return true;
  } catch {
    return false; // refused keys have tests of their own
  }
});

it("the slot function used here agrees with the vectors of the specification", () => {
  expect(crc16(Buffer.from("123456789"))).toBe(0x31c3);
  expect(slotOf("foo")).toBe(12182);
  expect(slotOf("{user1000}.following")).toBe(slotOf("{user1000}.followers"));
});

it.each([
  ["report", "fence:{report}"],
  ["a b/ü", "fence:{a b/ü}"],
  ["{user}:report", "fence:{user}:report"],
  ["report:{user}", "fence:report:{user}"],
  ["a{b}c{d}", "fence:a{b}c{d}"],
  ["}{a}", "fence:}{a}"],
  ["{{a}}", "fence:{{a}}"],
  ["a{b", "fence:{a{b}"],
])("the fence of %j is kept at %j", (key, fence) => {
  expect(fenceKeyOf(key)).toBe(fence);
});

it.each(["", "fence:a", "fence:", "a}b", "}", "{}", "{}a", "a{}b", "{a}", "{a{b}", "\ud800"])(
  "the result key %j is refused",
  (key) => {
    expect(() => fenceKeyOf(key)).toThrow(ResultKeyError);
  },
);

it("a fence is in the slot of its result, whatever the key", () => {
  fc.assert(
    fc.property(acceptedKey, (key) => {
      expect(slotOf(fenceKeyOf(key))).toBe(slotOf(key));
    }),
  );
});

it("two results never share a fence", () => {
  fc.assert(
    fc.property(acceptedKey, acceptedKey, (one, other) => {
      expect(fenceKeyOf(one) === fenceKeyOf(other)).toBe(one === other);
    }),
    { numRuns: 2000 },
  );
});

it("no fence is a result key that would be accepted", () => {
  fc.assert(
    fc.property(acceptedKey, (key) => {
      expect(() => fenceKeyOf(fenceKeyOf(key))).toThrow(ResultKeyError);
    }),
  );
});

it("the result's key can be read back from that of its fence", () => {
  fc.assert(
    fc.property(acceptedKey, (key) => {
      expect(resultKeyOf(fenceKeyOf(key))).toBe(key);
    }),
  );
});

it.each(["fence:", "fence:{}", "fence:report", "fence:fence:x", "report", "fence:a}b"])(
  "a key that no result has as its fence belongs to none: %s",
  (key) => {
    expect(resultKeyOf(key)).toBeUndefined();
  },
);
