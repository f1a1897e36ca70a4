/**
 * Goal: a holder is told that its time runs out, once each time, and never after the end.
 * Method: a clock moved by hand.
 */
import { describe, expect, it } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { Countdown } from "../../recipes/claim/countdown.js";
import { HandClock } from "../support/hand-clock.js";

/** 10 seconds, of which 1 is the margin and 1.5 are for stopping: a confirmation gives 7.5. */
function start() {
  const clock = new HandClock();
  const session = { clock, negotiatedTimeoutMs: 10_000, lastConfirmedAtMs: 0 };
  let passedAtMs: number | undefined;
  const countdown = new Countdown({
    session,
    stopGraceMs: 1_500,
    onPassed: () => {
      passedAtMs = clock.nowMs();
      countdown.end();
    },
  });
  const told: number[] = [];
  return {
    clock,
    session,
    countdown,
    told,
    listen: (beforeMs?: number) =>
      countdown.onRunningOut((remainingMs) => told.push(remainingMs), beforeMs),
    passedAtMs: () => passedAtMs,
  };
}

describe("a countdown", () => {
  it("passes at the session timeout after the last confirmation, less margin and grace", () => {
    const { clock, session, passedAtMs } = start();
    clock.move(5_000);
    session.lastConfirmedAtMs = 4_000;
    clock.move(6_499);
    expect(passedAtMs()).toBeUndefined();
    clock.move(1);
    expect(passedAtMs()).toBe(11_500);
    expect(clock.timers).toBe(0);
  });

  it("warns once when 30 per cent of the session timeout are left without a confirmation", () => {
    const { clock, told, listen, passedAtMs } = start();
    listen();
    clock.move(4_499);
    expect(told).toEqual([]);
    clock.move(1);
    expect(told).toEqual([3_000]);
    clock.move(60_000);
    expect(told).toEqual([3_000]);
    expect(passedAtMs()).toBe(7_500);
  });

  it("warns never while the server confirms, and again after a confirmation and another silence", () => {
    const { clock, session, told, listen } = start();
    listen(2_000);
    for (let atMs = 1_000; atMs <= 20_000; atMs += 1_000) {
      clock.move(1_000);
      session.lastConfirmedAtMs = atMs;
    }
    expect(told).toEqual([]);
    clock.move(5_500);
    expect(told).toEqual([2_000]);
    clock.move(1_000);
    session.lastConfirmedAtMs = clock.nowMs();
    clock.move(5_499);
    expect(told).toEqual([2_000]);
    clock.move(1);
    expect(told).toEqual([2_000, 2_000]);
  });

  it("is not armed again by a confirmation that leaves the time below the threshold", () => {
    const { clock, session, told, listen } = start();
    listen(2_000);
    clock.move(6_500);
    session.lastConfirmedAtMs = 500;
    clock.move(1_400);
    expect(told).toEqual([2_000]);
  });

  it("warns a late listener of what is left, and each listener at its own time", () => {
    const { clock, told, listen } = start();
    clock.move(5_000);
    listen(3_000);
    listen(1_000);
    clock.move(0);
    expect(told).toEqual([2_500]);
    clock.move(1_500);
    expect(told).toEqual([2_500, 1_000]);
  });

  it("tells the loss and no warning when a pause outlasts both, as a stopped process wakes up", () => {
    const { clock, told, session, listen, passedAtMs } = start();
    listen();
    session.lastConfirmedAtMs = -60_000; // as if time had jumped
    clock.move(0);
    clock.move(4_500);
    expect(told).toEqual([]);
    clock.move(3_000);
    expect(passedAtMs()).toBeDefined();
  });

  it("tells nobody after its end or after a listener was taken away, and leaves no timer behind", () => {
    const { clock, told, countdown, listen } = start();
    const stop = listen();
    stop();
    stop();
    clock.move(5_000);
    listen();
    countdown.end();
    expect(clock.timers).toBe(0);
    listen();
    clock.move(60_000);
    expect(told).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it.each([0, -1, 7_501, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses a warning %d milliseconds before",
    (beforeMs) => {
      const { listen } = start();
      expect(() => listen(beforeMs)).toThrow(OptionError);
    },
  );

  it("warns by default not before half of what a long stop grace leaves is over", () => {
    const clock = new HandClock();
    const session = { clock, negotiatedTimeoutMs: 10_000, lastConfirmedAtMs: 0 };
    const countdown = new Countdown({ session, stopGraceMs: 5_000, onPassed: () => {} });
    const told: number[] = [];
    countdown.onRunningOut((remainingMs) => told.push(remainingMs), undefined);
    clock.move(1_999);
    expect(told).toEqual([]);
    clock.move(1);
    expect(told).toEqual([2_000]);
  });
});
