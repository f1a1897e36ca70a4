/**
 * What a request costs through the sessions' thread, against one on the caller's own thread. Each has a process of its
 * own, because the package works in one thread of a process; they take turns. `npm run bench`.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, inject, it } from "vitest";

const ROUNDS = 5;

const PROGRAM = `
import { claim, ZooKeeper } from "./dist/recipes/index.js";
import { systemClock } from "./dist/lib/clock.js";
import { Deadline } from "./dist/lib/deadline.js";
const [connect, thread] = process.argv.slice(1);
const zookeeper = new ZooKeeper({ connect, thread });
const session = await zookeeper.session(Deadline.after(10_000, systemClock));
const perCallUs = async (count, run) => {
  const startMs = performance.now();
  await run(count);
  return ((performance.now() - startMs) / count) * 1_000;
};
const one = async (count) => { for (let i = 0; i < count; i += 1) await session.list("/"); };
const all = (count) => Promise.all(Array.from({ length: count }, () => session.list("/")));
const claims = async (count) => {
  for (let i = 0; i < count; i += 1) await (await claim({ zookeeper, job: "bench" })).claim.release();
};
await one(500);
await claims(50);
console.log(JSON.stringify({
  "list, one after the other": await perCallUs(3_000, one),
  "list, all at once": await perCallUs(3_000, all),
  "claim and release": await perCallUs(300, claims),
}));
await zookeeper.close();
`;

function measure(thread: "own" | "caller"): Record<string, number> {
  const args = ["--input-type=module", "--eval", PROGRAM, inject("zookeeper"), thread];
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  return JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }));
}

it("measures a request on the sessions' thread and on the caller's", { timeout: 300_000 }, () => {
  const rounds = Array.from({ length: ROUNDS }, () => ({
    own: measure("own"),
    caller: measure("caller"),
  }));
  for (const name of Object.keys(rounds[0]?.own ?? {})) {
    const of = (thread: "own" | "caller") => rounds.map((round) => round[thread][name] ?? 0);
    console.log(`${name.padEnd(26)} own ${told(of("own"))}   caller ${told(of("caller"))}`);
  }
  expect(rounds).toHaveLength(ROUNDS);
});

/** Median, least and most, in microseconds. */
function told(values: number[]): string {
  const sorted = values.toSorted((a, b) => a - b).map((value) => Math.round(value));
  return `${sorted[Math.floor(sorted.length / 2)]} µs (${sorted[0]} to ${sorted.at(-1)})`;
}
