/**
 * Goal: the demo tells its story on real servers, and its exit code can be trusted in both directions.
 */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { cli, startCli } from "../support/cli.js";
import { rawRedis } from "../support/raw-redis.js";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
  await writeFile(join(folder, "one.txt"), "apple apple pear fence fence fence");
  await writeFile(join(folder, "two.txt"), "apple and some words");
  await writeFile(join(folder, "binary"), Buffer.from([0, 1, 2, 3]));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

// the shared servers, so that only the story is under test here
const servers = () => ["--zookeeper", inject("zookeeper"), "--redis", inject("redis")];

/** Processes that were started with this folder as their input, as the demo's workers are. */
async function workersOf(input: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""); // it has ended meanwhile
      return line.includes("worker.js") && line.includes(input) ? [pid] : [];
    }),
  );
  return found.flat();
}

interface End {
  asTold: boolean;
  verdict: string;
  result: { worker: string; token: string; files: number; words: number };
}

function endOf(stdout: Buffer): { steps: Record<string, unknown>[]; end: End } {
  const lines = stdout.toString().trim().split("\n");
  const objects = lines.map((line) => JSON.parse(line));
  return { steps: objects.slice(0, -1), end: objects.at(-1) };
}

describe("the demo", () => {
  it("shows a late write refused: the newer result stands, and it exits with 0", async () => {
    const run = await cli(["demo", "--input", folder, "--json", ...servers()]);
    expect(run.status, run.stderr).toBe(0);
    const { steps, end } = endOf(run.stdout);
    expect(end.asTold).toBe(true);
    expect(end.result).toMatchObject({ files: 2 });
    expect(end.result.worker).not.toBe("A");
    const what = steps.map(({ who, event, outcome }) =>
      [who, event, outcome ?? ""].join(" ").trim(),
    );
    const first = (step: string) => what.indexOf(step);
    expect(first("A granted")).toBeGreaterThanOrEqual(0);
    expect(first("demo stopped")).toBeGreaterThan(first("A checked"));
    expect(first("B granted")).toBeGreaterThan(first("demo stopped"));
    expect(first("demo continued")).toBeGreaterThan(first("B released"));
    expect(first("A wrote stale")).toBeGreaterThan(first("demo continued"));
    const tokens = steps.filter(({ event }) => event === "granted").map(({ token }) => token);
    expect([...tokens].sort()).toEqual(tokens);
    expect(new Set(tokens).size).toBe(3);
    expect(end.result.token > String(tokens[0])).toBe(true);
  });

  it("shows without the fence that the old result ends on top, and exits with 0 as that is its story", async () => {
    const run = await cli(["demo", "--unfenced", "--input", folder, "--json", ...servers()]);
    expect(run.status, run.stderr).toBe(0);
    const { end, steps } = endOf(run.stdout);
    expect(end.asTold).toBe(true);
    expect(end.result.worker).toBe("A");
    const first = steps.find(({ event, who }) => event === "granted" && who === "A");
    expect(end.result.token).toBe(first?.token);
  });

  it("prints a timeline that people can read, with tokens and a verdict", async () => {
    const run = await cli(["demo", "--input", folder, ...servers()]);
    const text = run.stdout.toString();
    expect(text).toMatch(/^ +\d+\.\d s {2}A +claim granted, token \d+ /m);
    expect(text).toMatch(/late write refused: token \d+ is below the fence \d+/);
    expect(text).toMatch(/^verdict: the late write of A \(token \d+\) was refused/m);
    expect(text).not.toContain("\u001b["); // no terminal, no colours
  });

  it("removes what it wrote into a Redis that is not its own", async () => {
    const keys = () => rawRedis("KEYS", "*fencekeeper-demo:*");
    const demo = startCli(["demo", "--input", folder, ...servers()]);
    await demo.until("wrote its result");
    expect(await keys()).toMatch(/^\*2\r\n/); // the result and its fence
    const end = await demo.ended;
    expect(end.status, end.stderr).toBe(0);
    expect(await keys()).toBe("*0\r\n");
  });

  it("leaves no process behind when it is interrupted while a worker is stopped", async () => {
    const demo = startCli(["demo", "--input", folder, ...servers()]);
    await demo.until("(SIGSTOP)");
    expect(await workersOf(folder)).toHaveLength(3);
    demo.signal("SIGINT");
    expect((await demo.ended).status).toBe(130);
    expect(await workersOf(folder)).toEqual([]);
  });
});
