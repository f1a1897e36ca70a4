import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GenerationError, SequenceExhaustedError, TokenError } from "../../lib/errors.js";
import {
  compareTokens,
  ERA_MAX,
  generationFromCzxid,
  isExhausted,
  makeToken,
  parseToken,
  SEQUENCE_MAX,
} from "../../lib/token.js";

const parts = fc.record({
  era: fc.integer({ min: 0, max: ERA_MAX }),
  generation: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  sequence: fc.integer({ min: 0, max: SEQUENCE_MAX }),
});

describe("a fencing token", () => {
  it.each([
    [{ era: 0, generation: 0n, sequence: 0 }, "00000.00000000000000000000.0000000000"],
    [{ era: 0, generation: 4294967298n, sequence: 42 }, "00000.00000000004294967298.0000000042"],
    [
      { era: 99999, generation: 2n ** 63n - 1n, sequence: 2147483646 },
      "99999.09223372036854775807.2147483646",
    ],
  ])("has the canonical text of era, generation and sequence: %o is %s", (given, text) => {
    expect(makeToken(given).text).toBe(text);
    expect(parseToken(text)).toEqual(makeToken(given));
  });

  it("reads back from its own text", () => {
    fc.assert(
      fc.property(parts, (given) => {
        expect(parseToken(makeToken(given).text)).toEqual(makeToken(given));
      }),
    );
  });

  it("is ordered by its text just as by its integers", () => {
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const [x, y] = [makeToken(a), makeToken(b)];
        const byText = x.text < y.text ? -1 : x.text > y.text ? 1 : 0;
        expect(Math.sign(compareTokens(x, y))).toBe(byText);
      }),
    );
  });

  it("is newer with a higher generation, whatever the sequence: a parent made anew starts at 0 again", () => {
    const old = makeToken({ era: 0, generation: 7n, sequence: SEQUENCE_MAX });
    const remade = makeToken({ era: 0, generation: 8n, sequence: 0 });
    expect(compareTokens(remade, old)).toBeGreaterThan(0);
  });

  it("is newer with a higher era, whatever the generation: an ensemble made anew starts lower again", () => {
    const old = makeToken({ era: 0, generation: 2n ** 63n - 1n, sequence: SEQUENCE_MAX });
    const rebuilt = makeToken({ era: 1, generation: 1n, sequence: 0 });
    expect(compareTokens(rebuilt, old)).toBeGreaterThan(0);
  });

  it.each([
    "",
    "42",
    "0.0.0",
    "2147483647",
    "4294967296",
    "99999999999999",
    "9007199254740993",
    "-1",
    "1e3",
    "007",
    " 5",
    "0x10",
    "00000.00000000004294967298.0000000042 ",
    " 00000.00000000004294967298.0000000042",
    "00000.00000000004294967298.0000000042\n",
    "00000,00000000004294967298,0000000042",
    "00000.00000000004294967298.-000000042",
    "00000.00000000004294967298.+000000042",
    "0000.00000000004294967298.0000000042",
    "00000.0000000000429496729８.0000000042",
    "00000.99999999999999999999.0000000042",
    "00000.00000000004294967298.2147483647",
    "00000.00000000004294967298.9999999999",
  ])("is not read from %j", (text) => {
    expect(() => parseToken(text)).toThrow(TokenError);
  });

  it.each([2147483647, -1, -2147483648])(
    "is never made at the end of the counter: %d",
    (sequence) => {
      expect(isExhausted(sequence)).toBe(true);
      expect(() => makeToken({ era: 0, generation: 1n, sequence })).toThrow(SequenceExhaustedError);
    },
  );

  it.each([
    { era: -1, generation: 1n, sequence: 0 },
    { era: 100_000, generation: 1n, sequence: 0 },
    { era: 0.5, generation: 1n, sequence: 0 },
    { era: 0, generation: -1n, sequence: 0 },
    { era: 0, generation: 2n ** 63n, sequence: 0 },
    { era: 0, generation: 1n, sequence: 0.5 },
    { era: 0, generation: 1n, sequence: Number.NaN },
  ])("is not made of parts out of range: %o", (given) => {
    expect(() => makeToken(given)).toThrow(TokenError);
  });

  it("takes its generation from a czxid only while that arrived exactly", () => {
    expect(generationFromCzxid(0)).toBe(0n);
    expect(generationFromCzxid(Number.MAX_SAFE_INTEGER)).toBe(9007199254740991n);
    expect(() => generationFromCzxid(Number.MAX_SAFE_INTEGER + 1)).toThrow(GenerationError);
    expect(() => generationFromCzxid(-1)).toThrow(GenerationError);
    expect(() => generationFromCzxid(1.5)).toThrow(GenerationError);
  });
});
