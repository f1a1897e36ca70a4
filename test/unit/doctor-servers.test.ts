/** Findings at several servers become one table that says no more than needed, and hides nothing. */
import { expect, it } from "vitest";
import { Check } from "../../recipes/doctor/finding.js";
import { acrossServers } from "../../recipes/doctor/redis/across-servers.js";

const EVICTION = new Check("redis", "eviction", "an evicted fence lets an old token in");
const SAVED = new Check("redis", "persistence", "a restart forgets every fence");

it("one server's findings are what they are", () => {
  const findings = [EVICTION.well("noeviction"), SAVED.warning("none", "save")];
  expect(acrossServers([{ place: "a:1", findings }])).toEqual(findings);
  expect(acrossServers([])).toEqual([]);
});

it("what is well everywhere is told once, and that others say it in other words", () => {
  const servers = ["4 keys", "4 keys", "5 keys"].map((found, index) => ({
    ...{ place: `a:${index}`, findings: [EVICTION.well(found)] },
  }));
  expect(acrossServers(servers.slice(0, 2))).toEqual([EVICTION.well("4 keys")]);
  expect(acrossServers(servers)).toEqual([EVICTION.well("4 keys (and as well: 1 more)")]);
});

it("what is not well is told with its servers, and once for those that are alike", () => {
  const servers = [
    { place: "a:1", findings: [EVICTION.well("noeviction"), SAVED.warning("none", "save")] },
    { place: "b:2", findings: [EVICTION.broken("lru", "set"), SAVED.warning("none", "save")] },
    { place: "c:3", findings: [EVICTION.broken("lfu", "set"), SAVED.warning("none", "save")] },
  ];
  expect(acrossServers(servers).map(({ level, found }) => `${level}: ${found}`)).toEqual([
    "broken: lru (b:2)",
    "broken: lfu (c:3)",
    "warning: none (all servers)",
  ]);
});
