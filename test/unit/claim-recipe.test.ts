/**
 * Goal: numbers that cannot be trusted are never granted. Method: the recipe on a session that a test makes up.
 */
import { describe, expect, it } from "vitest";
import { GenerationError, SequenceExhaustedError } from "../../lib/errors.js";
import { claim } from "../../recipes/claim.js";
import { HandMadeSession } from "../support/hand-made-session.js";

const claimOn = (session: HandMadeSession, options: { lockPath?: string } = {}) =>
  claim({
    zookeeper: { clock: session.clock, session: async () => session },
    job: "job",
    ...options,
  });

describe("the claim recipe", () => {
  it.each(["2147483647", "-2147483648", "-0000000001"])(
    "grants nothing at the end of the counter, and takes its contender away: %s",
    async (sequence) => {
      const session = new HandMadeSession(sequence);
      const claimed = claimOn(session, { lockPath: "/locks/theirs" });
      await expect(claimed).rejects.toBeInstanceOf(SequenceExhaustedError);
      expect([...session.nodes]).toEqual([]);
      expect(session.deleted).toHaveLength(1);
    },
  );

  it.each(["2146435071", "2147483647", "-2147483648"])(
    "deletes a path of its own whose counter is near the end, and is granted on the next one: %s",
    async (sequence) => {
      const session = new HandMadeSession([sequence, "0000000000"]);
      const answer = await claimOn(session);
      expect(answer).toMatchObject({ outcome: "granted", claim: { token: { sequence: 0 } } });
      expect(session.deleted).toEqual([
        expect.stringContaining(sequence),
        "/fencekeeper/claims/job",
      ]);
    },
  );

  it("gives up on a path of its own that stays near the end however often it is deleted", async () => {
    const session = new HandMadeSession("2147483647");
    await expect(claimOn(session)).rejects.toBeInstanceOf(SequenceExhaustedError);
    expect([...session.nodes]).toEqual([]);
  });

  it("grants the last number before the end, read with the dash as what separates it", async () => {
    const answer = await claimOn(new HandMadeSession("2147483646"), { lockPath: "/locks/theirs" });
    expect(answer).toMatchObject({
      outcome: "granted",
      claim: { token: { sequence: 2147483646 } },
    });
  });

  it("grants sequence 0 as any other", async () => {
    const answer = await claimOn(new HandMadeSession("0000000000"));
    expect(answer).toMatchObject({ outcome: "granted", claim: { token: { sequence: 0 } } });
  });

  it("grants nothing when the generation cannot have arrived exactly, and takes its contender away", async () => {
    const session = new HandMadeSession("0000000001", 2 ** 53);
    await expect(claimOn(session)).rejects.toBeInstanceOf(GenerationError);
    expect([...session.nodes]).toEqual([]);
  });

  it("does not grant past a contender with a lower number, whatever the listing's order", async () => {
    const session = new HandMadeSession("0000000010");
    const other = "00000000-0000-4000-8000-000000000000";
    session.nodes.add(`/fencekeeper/claims/job/_c_${other}-lock-0000000009`);
    await expect(claimOn(session)).resolves.toMatchObject({ outcome: "busy", ahead: 1 });
    expect(session.deleted).toHaveLength(1);
  });

  it("adopts the znode of a create whose reply was lost, and makes no second one", async () => {
    const session = new HandMadeSession("0000000003");
    session.losesNextCreate = "made by us";
    await expect(claimOn(session)).resolves.toMatchObject({ claim: { token: { sequence: 3 } } });
    expect(session.nodes.size).toBe(1);
    expect(session.deleted).toEqual([]);
  });

  it("makes another znode after a lost create that had no effect", async () => {
    const session = new HandMadeSession("0000000003");
    session.losesNextCreate = "without effect";
    await expect(claimOn(session)).resolves.toMatchObject({ outcome: "granted" });
    expect(session.nodes.size).toBe(1);
  });

  it("neither adopts nor deletes a znode with its own name that belongs to another session", async () => {
    const session = new HandMadeSession(["0000000003", "0000000004"]);
    session.losesNextCreate = "made by another session";
    await expect(claimOn(session)).resolves.toMatchObject({ outcome: "busy", ahead: 1 });
    expect([...session.nodes]).toEqual([expect.stringMatching(/-lock-0000000003$/)]);
    expect(session.deleted).toEqual([expect.stringMatching(/-lock-0000000004$/)]);
  });
});
