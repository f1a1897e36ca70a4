import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JobIdError } from "../../lib/errors.js";
import { decodeJobId, encodeJobId, JOB_ID_BYTES_MAX } from "../../lib/job-id.js";
import { claimPath } from "../../lib/zookeeper/paths.js";

describe("a job id", () => {
  it.each([
    ["nightly-report", "nightly-report"],
    ["v1.2_x-3", "v1.2_x-3"],
    ["a/b", "a%2Fb"],
    ["..", "%2E."],
    [".", "%2E"],
    [".hidden", "%2Ehidden"],
    ["{x}", "%7Bx%7D"],
    ["zookeeper", "%7Aookeeper"],
    ["a b", "a%20b"],
    ["100%", "100%25"],
    ["😀", "%F0%9F%98%80"],
    ["\u0000", "%00"],
  ])("%j is the znode %s", (id, name) => {
    expect(encodeJobId(id)).toBe(name);
    expect(decodeJobId(name)).toBe(id);
  });

  it("comes back from its znode name, whatever it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 100 }), (id) => {
        expect(decodeJobId(encodeJobId(id))).toBe(id);
      }),
    );
  });

  it("is one path component that ZooKeeper takes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 100 }), (id) => {
        const name = encodeJobId(id);
        expect(name).toMatch(/^[A-Za-z0-9._%-]+$/);
        expect([".", "..", "zookeeper"]).not.toContain(name);
      }),
    );
  });

  it("shares its znode with no other job id", () => {
    const ids = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(encodeJobId(a) === encodeJobId(b)).toBe(a === b);
      }),
    );
  });

  it("is refused when it is empty, too long or not Unicode", () => {
    expect(() => encodeJobId("")).toThrow(JobIdError);
    expect(() => encodeJobId("\ud83d")).toThrow(JobIdError);
    expect(() => encodeJobId("x".repeat(JOB_ID_BYTES_MAX + 1))).toThrow(JobIdError);
    expect(() => encodeJobId("é".repeat(JOB_ID_BYTES_MAX / 2 + 1))).toThrow(JobIdError);
    expect(encodeJobId("x".repeat(JOB_ID_BYTES_MAX))).toHaveLength(JOB_ID_BYTES_MAX);
  });

  it.each(["", "a%2fb", "%61", "%", "%FF", "a/b", "..", "zookeeper", "%2e%2E"])(
    "is not read from %j, which the encoding never gives",
    (name) => {
      expect(decodeJobId(name)).toBeUndefined();
    },
  );

  it("has its claim path below the root", () => {
    expect(claimPath("a/b")).toBe("/fencekeeper/claims/a%2Fb");
    expect(claimPath("x", "/team/locks")).toBe("/team/locks/claims/x");
  });
});
