/** How jobs, holders and digests fit into the fence, whose fields hold at most 64 bytes. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { digestOf, storedHolder, storedJob } from "../../lib/redis/stored-form.js";

const anyText = fc.string({ unit: "grapheme", maxLength: 100 });

it("a job id of up to 64 bytes is stored as it is", () => {
  expect(storedJob("reports/2024")).toBe("reports/2024");
  expect(storedJob("x".repeat(64))).toBe("x".repeat(64));
});

it("a longer job id is stored as its hash", () => {
  const stored = storedJob("x".repeat(65));
  expect(stored).toMatch(/^sha256:[A-Za-z0-9_-]{43}$/);
  expect(storedJob("é".repeat(33))).toMatch(/^sha256:/);
});

it("a job id that looks like a stored hash cannot pass for another job", () => {
  const stored = storedJob("x".repeat(65));
  expect(storedJob(stored)).not.toBe(stored);
  expect(storedJob("sha256:")).toMatch(/^sha256:.{43}$/);
});

it("any job and any holder are stored within 64 bytes, and different jobs differently", () => {
  fc.assert(
    fc.property(anyText, anyText, (one, other) => {
      expect(Buffer.byteLength(storedJob(one))).toBeLessThanOrEqual(64);
      expect(Buffer.byteLength(storedHolder(one))).toBeLessThanOrEqual(64);
      expect(storedJob(one) === storedJob(other)).toBe(one === other);
    }),
  );
});

it("a holder is cut before the character that does not fit", () => {
  expect(storedHolder(`${"a".repeat(63)}é`)).toBe("a".repeat(63));
  expect(storedHolder(`${"a".repeat(61)}🔑`)).toBe("a".repeat(61));
  expect(storedHolder(`${"a".repeat(60)}🔑`)).toBe(`${"a".repeat(60)}🔑`);
  expect(storedHolder("half \ud800")).toBe("half \ufffd");
});

it("a cut holder is the beginning of the holder", () => {
  fc.assert(
    fc.property(anyText, (holder) => {
      expect(holder.startsWith(storedHolder(holder))).toBe(true);
    }),
  );
});

it("the digest is SHA-256 in lower-case hexadecimal", () => {
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  expect(digestOf(Buffer.from("abc"))).toBe(abc);
});
