import { describe, expect, it } from "vitest";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { OptionError } from "../../lib/errors.js";
import { HandClock } from "../support/hand-clock.js";

describe("a deadline", () => {
  it("passes once its time is over, and leaves no timer behind", async () => {
    const clock = new HandClock();
    const wait = settleWithin(new Promise(() => {}), Deadline.after(100, clock));
    clock.move(99);
    expect(clock.timers).toBe(1);
    clock.move(1);
    await expect(wait).resolves.toBe(TIMED_OUT);
    expect(clock.timers).toBe(0);
  });

  it("gives way to a promise that settles before it, and leaves no timer behind", async () => {
    const clock = new HandClock();
    const deadline = Deadline.after(100, clock);
    await expect(settleWithin(Promise.resolve(5), deadline)).resolves.toBe(5);
    await expect(settleWithin(Promise.reject(new Error("no")), deadline)).rejects.toThrow("no");
    expect(clock.timers).toBe(0);
  });

  it("gives way to a signal, whose reason it throws", async () => {
    const clock = new HandClock();
    const controller = new AbortController();
    const wait = settleWithin(new Promise(() => {}), Deadline.after(100, clock), controller.signal);
    controller.abort(new Error("enough"));
    await expect(wait).rejects.toThrow("enough");
    expect(clock.timers).toBe(0);
    const late = settleWithin(new Promise(() => {}), Deadline.after(100, clock), controller.signal);
    await expect(late).rejects.toThrow("enough");
  });

  it("waits in steps when it is further away than a timer can be set", () => {
    const clock = new HandClock();
    let passed = 0;
    Deadline.after(5_000_000_000, clock).onPassed(() => {
      passed += 1;
    });
    clock.move(2_147_483_647);
    clock.move(2_147_483_647);
    expect(passed).toBe(0);
    clock.move(1_000_000_000);
    expect(passed).toBe(1);
  });

  it("that is infinite never passes and sets no timer", () => {
    const clock = new HandClock();
    const deadline = Deadline.after(Number.POSITIVE_INFINITY, clock);
    deadline.onPassed(() => {});
    expect(clock.timers).toBe(0);
    expect(deadline.passed).toBe(false);
    expect(deadline.atMost(10).remainingMs()).toBe(10);
  });

  it("is not made of a negative time or of no number", () => {
    const clock = new HandClock();
    expect(() => Deadline.after(-1, clock)).toThrow(OptionError);
    expect(() => Deadline.after(Number.NaN, clock)).toThrow(OptionError);
  });
});
