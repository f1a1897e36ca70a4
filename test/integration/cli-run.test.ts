/**
 * Goal: `run` keeps its contract for commands, results, waiting and exit codes. Method: the built command line as
 * processes, on the shared servers.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseToken } from "../../lib/token.js";
import { cli, MAIN, startCli } from "../support/cli.js";
import { contendersOf, deleteClaimPath } from "../support/raw-zookeeper.js";

let job: string;
let key: string;
let folder: string;

beforeEach(async () => {
  const id = randomUUID();
  job = `job-${id}`;
  key = `key-${id}`;
  folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const sh = (script: string) => ["--", "sh", "-c", script];
const getJson = async (of = key) =>
  JSON.parse((await cli(["get", of, "--json"])).stdout.toString());

describe("eight processes that run one job at once", () => {
  it("let one run and send seven away with 75", async () => {
    const go = join(folder, "go");
    // the one that runs does so until all others have ended, which the test says by making a file
    const script = `echo ran; until [ -e ${go} ]; do read -t 0.05 _ < /dev/null || :; done`;
    const processes = Array.from({ length: 8 }, () =>
      startCli(["run", job, "--key", key, "--", "bash", "-c", script]),
    );
    const ended: number[] = [];
    const all = processes.map(async (process) => {
      const { status } = await process.ended;
      ended.push(status ?? -1);
      if (ended.length === 7) await writeFile(go, "");
    });
    await Promise.all(all);
    expect(ended).toEqual([75, 75, 75, 75, 75, 75, 75, 0]);
    expect((await cli(["get", key])).stdout.toString()).toBe("ran\n");
    expect(await getJson()).toMatchObject({ value: "ran\n", state: "committed", job, stale: 0 });
  });

  it("run one after the other with rising tokens when they wait", async () => {
    const log = join(folder, "log");
    const token = "$FENCEKEEPER_TOKEN";
    const script = `echo "begin ${token}" >> ${log}; echo "end ${token}" >> ${log}; echo ${token}`;
    const ends = await Promise.all(
      Array.from({ length: 8 }, () =>
        cli(["run", job, "--key", key, "--wait", "30s", ...sh(script)]),
      ),
    );
    expect(ends.map(({ status }) => status)).toEqual(Array(8).fill(0));
    const lines = (await readFile(log, "utf8")).trim().split("\n");
    const begins = lines.filter((line) => line.startsWith("begin")).map((line) => line.slice(6));
    expect(lines).toEqual(begins.flatMap((token) => [`begin ${token}`, `end ${token}`]));
    expect([...begins].sort()).toEqual(begins);
    expect(new Set(begins).size).toBe(8);
    expect(await getJson()).toMatchObject({ token: begins[7], value: `${begins[7]}\n` });
  });

  it("run once and all end with 0 when they wait and accept what is there", async () => {
    const log = join(folder, "log");
    const script = `echo ran >> ${log}; echo the-result`;
    const ends = await Promise.all(
      Array.from({ length: 8 }, () =>
        cli(["run", job, "--key", key, "--wait", "30s", "--once", ...sh(script)]),
      ),
    );
    expect(ends.map(({ status }) => status)).toEqual(Array(8).fill(0));
    expect(await readFile(log, "utf8")).toBe("ran\n");
    // each of them gives the result, whoever made it
    expect(ends.map(({ stdout }) => stdout.toString())).toEqual(Array(8).fill("the-result\n"));
    expect(ends.filter(({ stderr }) => stderr.includes("is there already"))).toHaveLength(7);
  });
});

describe("run with --wait", () => {
  it("says that it waits and how many are ahead, as text, as an event, or not at all", async () => {
    const go = join(folder, "go");
    const script = `echo up; until [ -e ${go} ]; do read -t 0.05 _ < /dev/null || :; done`;
    const holder = startCli(["run", job, "--", "bash", "-c", script]);
    await holder.until("up");
    const waiter = (...flags: string[]) =>
      startCli(["run", job, "--wait", "10m", ...flags, "--", "true"]);
    const text = waiter();
    await text.until("fencekeeper: waiting for the claim, 1 ahead of us");
    const json = waiter("--json");
    await json.until("waiting");
    expect(JSON.parse(json.stderr)).toMatchObject({
      event: "waiting",
      ahead: 2,
      holder: expect.stringMatching(/^_c_.*-lock-0000000000$/),
    });
    const quiet = waiter("--quiet");
    await vi.waitFor(async () => expect(await contendersOf(job)).toHaveLength(4), {
      timeout: 30_000,
    });
    await writeFile(go, "");
    const ends = await Promise.all([holder, text, json, quiet].map(({ ended }) => ended));
    expect(ends.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    expect(ends[3]?.stderr).toBe("");
  });
});

describe("a command under a claim", () => {
  it("is told its job, its token and its sequence", async () => {
    const { stdout, status } = await cli([
      "run",
      job,
      ...sh('echo "$FENCEKEEPER_JOB|$FENCEKEEPER_TOKEN|$FENCEKEEPER_SEQUENCE"'),
    ]);
    const [toldJob, token = "", sequence] = stdout.toString().trim().split("|");
    expect(status).toBe(0);
    expect(toldJob).toBe(job);
    expect(parseToken(token).sequence).toBe(Number(sequence));
  });

  it("can commit by itself, without being told token, job or address", async () => {
    const script = `printf inner | "${process.execPath}" "${MAIN}" commit --key ${key}`;
    const end = await cli(["run", job, ...sh(script)]);
    expect(end.status, end.stderr).toBe(0);
    expect(await getJson()).toMatchObject({ value: "inner", job });
  });

  it("keeps every byte of its output, in the result as on standard output", async () => {
    const bytes = Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256));
    const file = join(folder, "bytes");
    await writeFile(file, bytes);
    const end = await cli(["run", job, "--key", key, "--", "cat", file]);
    expect(end.stdout.equals(bytes)).toBe(true);
    expect((await cli(["get", key])).stdout.equals(bytes)).toBe(true);
  });

  it("reads the standard input that was given to run", async () => {
    const end = await cli(["run", job, "--", "cat"], { input: "hello" });
    expect(end.stdout.toString()).toBe("hello");
  });

  it("is run again for a result that is older than --max-age, and not for a younger one", async () => {
    const run = (maxAge: string, word: string) =>
      cli(["run", job, "--key", key, "--max-age", maxAge, ...sh(`echo ${word}`)]);
    expect((await run("1h", "first")).stdout.toString()).toBe("first\n");
    expect((await run("1h", "second")).stdout.toString()).toBe("first\n");
    expect((await run("0s", "third")).stdout.toString()).toBe("third\n");
  });

  it("commits with a time to live where one was given", async () => {
    await cli(["run", job, "--key", key, "--ttl", "1ms", ...sh("echo gone")]);
    expect((await cli(["get", key])).status).toBe(1);
    expect(await getJson()).toMatchObject({ value: null, state: "committed" });
  });

  it("commits after the claim path was deleted and made anew, where the sequence starts at 0 again", async () => {
    const first = await cli(["run", job, "--key", key, ...sh("echo $FENCEKEEPER_TOKEN")]);
    await deleteClaimPath(job);
    const second = await cli(["run", job, "--key", key, ...sh("echo $FENCEKEEPER_TOKEN")]);
    expect(second.status, second.stderr).toBe(0);
    const [old, fresh] = [first, second].map(({ stdout }) => parseToken(stdout.toString().trim()));
    expect(fresh?.sequence).toBe(0);
    expect(fresh?.text && old?.text && fresh.text > old.text).toBe(true);
  });
});

describe("the exit code of run", () => {
  it.each([
    ["exit 0", 0],
    ["exit 1", 1],
    ["exit 3", 3],
    ["exit 75", 75],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
  ])("is the command's own: `%s` gives %d", async (script, status) => {
    expect((await cli(["run", job, ...sh(script)])).status).toBe(status);
  });

  it("is the command's own also with a key, and then nothing is committed", async () => {
    const end = await cli(["run", job, "--key", key, ...sh("echo half; exit 3")]);
    expect(end.status).toBe(3);
    expect((await cli(["get", key])).status).toBe(1);
  });

  it("is 127 for a command that is not found, and 126 for one that cannot be executed", async () => {
    const plain = join(folder, "plain");
    await writeFile(plain, "no program");
    expect((await cli(["run", job, "--", "no-such-command-here"])).status).toBe(127);
    expect((await cli(["run", job, "--", plain])).status).toBe(126);
  });

  it("is 65 for a result above the limit, which is refused and not cut", async () => {
    const end = await cli([
      "run",
      job,
      "--key",
      key,
      "--max-bytes",
      "10B",
      ...sh("printf 12345678901"),
    ]);
    expect(end.status).toBe(65);
    expect(end.stdout.toString()).toBe("12345678901");
    expect((await cli(["get", key])).status).toBe(1);
  });

  it("is 65 for a key that belongs to another job, whose name is said", async () => {
    await cli(["run", job, "--key", key, ...sh("echo mine")]);
    const end = await cli(["run", `other-${job}`, "--key", key, ...sh("echo theirs")]);
    expect(end.status).toBe(65);
    expect(end.stderr).toContain(job);
    expect(end.stdout.toString()).toBe("");
    expect((await cli(["get", key])).stdout.toString()).toBe("mine\n");
  });

  it("is 73 when the fence is above the claim's token, and the command does not run", async () => {
    await cli(["run", job, "--key", key, "--era", "1", ...sh("echo newer")]);
    const end = await cli(["run", job, "--key", key, ...sh("echo older")]);
    expect(end.status).toBe(73);
    expect(end.stderr).toContain("--era");
    expect(end.stdout.toString()).toBe("");
    expect((await cli(["get", key])).stdout.toString()).toBe("newer\n");
  });
});
