/**
 * Goal: the production recipes keep the promise in far more faulty schedules than a real server could be put through.
 * Method: virtual time, faults drawn from a seed, invariants checked on each history. FENCEKEEPER_SEED=n plays one
 * schedule again, and FENCEKEEPER_SEEDS=n plays so many.
 */
import { describe, expect, it } from "vitest";
import { BROKEN_VARIANTS } from "./broken-variants.js";
import { runSchedule } from "./schedule.js";

const { FENCEKEEPER_SEED, FENCEKEEPER_SEEDS } = process.env;
const FIRST = Number(FENCEKEEPER_SEED ?? 1);
const SEEDS = FENCEKEEPER_SEED === undefined ? Number(FENCEKEEPER_SEEDS ?? 1_500) : 1;

/** Each broken variant has to be caught within so many. */
const VARIANT_SEEDS = 200;

describe("the recipes under simulated faults", () => {
  it(`keep every invariant in ${SEEDS} schedules`, { timeout: 100_000 + 100 * SEEDS }, async () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const { violations, history } = await runSchedule({ seed });
      const again = `FENCEKEEPER_SEED=${seed} npx vitest run test/simulation`;
      expect(violations, `${again}\n${history.join("\n")}`).toEqual([]);
    }
  });

  it("have the same history for the same seed, and another one for another", async () => {
    const [first, again, other] = [
      await runSchedule({ seed: 7 }),
      await runSchedule({ seed: 7 }),
      await runSchedule({ seed: 8 }),
    ];
    expect(again.history).toEqual(first.history);
    expect(other.history).not.toEqual(first.history);
  });

  it.each(BROKEN_VARIANTS)(
    "are seen to break when they are broken on purpose: $name",
    async (variant) => {
      const caughtBy: number[] = [];
      for (let seed = 1; seed <= VARIANT_SEEDS && caughtBy.length === 0; seed += 1) {
        const { violations } = await runSchedule({ seed, ...variant.options });
        if (violations.some((what) => variant.violates.test(what))) caughtBy.push(seed);
      }
      expect(caughtBy, `not caught within ${VARIANT_SEEDS} seeds`).toHaveLength(1);
    },
  );
});
