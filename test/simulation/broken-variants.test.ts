/**
 * Goal: the simulation is known to find what it is there to find. Method: each of the broken variants is built, and
 * played until one of its invariants does not hold.
 */
import { describe, expect, it } from "vitest";
import { BROKEN_VARIANTS } from "./broken-variants.js";
import { MutatedBuild } from "./mutated-build.js";

describe.concurrent("a broken variant of the production code", () => {
  it.each(BROKEN_VARIANTS)(
    "is caught by the simulation: $name",
    { timeout: 240_000 },
    async (variant) => {
      const build = MutatedBuild.make(variant.mutations);
      try {
        const said = await build.simulate(variant.withinSeeds, variant.faults);
        const { violating } = JSON.parse(said) as { violating: { violations: string[] }[] };
        const violations = violating.flatMap((each) => each.violations);
        expect(violations, `not caught within ${variant.withinSeeds} seeds`).not.toEqual([]);
        expect(violations.join("\n")).toMatch(variant.violates);
      } finally {
        build.remove();
      }
    },
  );
});
