/**
 * A simulated thread. Goal: the checks can tell a thread that knows what happened from one that has just gone on and
 * still has to run what waited for it.
 */
import { expect, it } from "vitest";
import { Lane } from "../../recipes/testing/lane.js";
import { Random } from "../../recipes/testing/random.js";
import { Scheduler } from "../../recipes/testing/scheduler.js";

it("a thread that goes on is behind until everything that waited for it has run", async () => {
  const scheduler = new Scheduler(new Random(1));
  const lane = new Lane(scheduler);
  const seen: [what: string, isBehind: boolean][] = [];
  const see = (what: string) => () => seen.push([what, lane.isBehind]);
  lane.hold("stop");
  lane.after(1, see("first timer"));
  lane.after(2, see("second timer"));
  lane.receive(see("arrival"));
  scheduler.after(3, () => lane.letGo("stop"));
  await scheduler.runUntil(() => seen.length === 3, 1_000);
  expect(seen).toEqual([
    ["first timer", true],
    ["second timer", true],
    ["arrival", false],
  ]);
});
