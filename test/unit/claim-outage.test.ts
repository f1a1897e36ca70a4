/**
 * Goal: who waits in the queue waits through an outage, and who never reached ZooKeeper is told at once.
 * Method: sessions that a test hands out or refuses, and a clock moved by hand.
 */
import { describe, expect, it } from "vitest";
import { SessionLostError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import type { SessionSource } from "../../lib/zookeeper/session-port.js";
import { type ClaimAnswer, type ClaimOptions, claim } from "../../recipes/claim.js";
import { HandClock } from "../support/hand-clock.js";
import { HandMadeSession } from "../support/hand-made-session.js";

/** Its requests are answered by its end, while its state still says that it is connected. */
function dyingSession(): HandMadeSession {
  const session = new HandMadeSession("0000000000");
  const lost = () => Promise.reject(new SessionLostError("expired", "create", "/", -112));
  session.create = lost;
  session.list = lost;
  return session;
}

/** Gives what the test has prepared, one after the other, and notes when it was asked. */
function sourceOf(prepared: (HandMadeSession | undefined)[]) {
  const clock = new HandClock();
  const askedAtMs: number[] = [];
  const source: SessionSource = {
    clock,
    session: async () => {
      askedAtMs.push(clock.nowMs());
      const next = prepared.length > 1 ? prepared.shift() : prepared[0];
      if (next === undefined) throw new ZooKeeperUnreachableError("refused");
      return next;
    },
  };
  return { clock, source, askedAtMs };
}

/** The ending of a claim, once there is one. */
function claimOn(zookeeper: SessionSource, options: Partial<ClaimOptions>) {
  const ending: { answer?: ClaimAnswer; error?: unknown } = {};
  claim({ zookeeper, job: "job", ...options }).then(
    (answer) => {
      ending.answer = answer;
    },
    (error) => {
      ending.error = error;
    },
  );
  return ending;
}

describe("a claim in an outage", () => {
  it("fails at once when ZooKeeper cannot be reached from the start", async () => {
    const { source, askedAtMs, clock } = sourceOf([undefined]);
    const ending = claimOn(source, { waitMs: 60_000 });
    await clock.pass(0);
    expect(ending.error).toBeInstanceOf(ZooKeeperUnreachableError);
    expect(askedAtMs).toEqual([0]);
  });

  it("tries to reach ZooKeeper again after it had a session, with pauses, and is granted afterwards", async () => {
    const living = new HandMadeSession("0000000007");
    const { source, askedAtMs, clock } = sourceOf([
      dyingSession(),
      ...Array(3).fill(undefined),
      living,
    ]);
    const ending = claimOn(source, { waitMs: 60_000 });
    for (let step = 0; step < 24; step += 1) await clock.pass(50);
    expect(askedAtMs).toEqual([0, 0, 250, 500, 750]);
    expect(ending.answer).toMatchObject({ claim: { token: { sequence: 7 } } });
  });

  it("ends with what the last try said when the wait is over, for ZooKeeper too", async () => {
    const { source, askedAtMs, clock } = sourceOf([dyingSession(), undefined]);
    const ending = claimOn(source, { waitMs: 1_000, answerMs: 500 });
    for (let step = 0; step < 29; step += 1) await clock.pass(50);
    expect(ending).toEqual({});
    await clock.pass(50);
    expect(ending.error).toBeInstanceOf(ZooKeeperUnreachableError);
    expect(askedAtMs).toEqual([0, 0, 250, 500, 750, 1_000, 1_250]);
    expect(clock.timers).toBe(0);
  });

  it("is given up by its signal between two tries", async () => {
    const controller = new AbortController();
    const { source, askedAtMs, clock } = sourceOf([dyingSession(), undefined]);
    const ending = claimOn(source, { waitMs: 60_000, signal: controller.signal });
    await clock.pass(250);
    controller.abort(new Error("enough"));
    await clock.pass(0);
    expect(ending.error).toMatchObject({ message: "enough" });
    await clock.pass(60_000);
    expect(askedAtMs).toEqual([0, 0, 250]);
    expect(clock.timers).toBe(0);
  });
});
