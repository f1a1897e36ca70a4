/** Our own process around a command: how it ends, and what it does with signals and with its standard output. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { processSystem } from "../../recipes/command/process-system.js";

const PROJECT = resolve(import.meta.dirname, "../..");

let build: string;
let pidFile: string;
let wrappers: ChildProcess[];

beforeAll(() => {
  // A process of its own needs JavaScript: only the modules that are tested here are compiled.
  build = mkdtempSync(join(tmpdir(), "fencekeeper-"));
  const compilerOptions = {
    noEmit: false,
    rootDir: PROJECT,
    outDir: build,
    typeRoots: [join(PROJECT, "node_modules/@types")],
  };
  const names = ["running-command.ts", "forward-signals.ts"];
  const files = names.map((name) => join(PROJECT, "recipes/command", name));
  const config = { extends: join(PROJECT, "tsconfig.json"), compilerOptions, include: [], files };
  writeFileSync(join(build, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(build, "package.json"), JSON.stringify({ type: "module" }));
  const compiler = join(PROJECT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "-p", join(build, "tsconfig.json")], {
    stdio: "inherit",
  });
});

afterAll(() => rmSync(build, { recursive: true }));

beforeEach(() => {
  pidFile = join(build, "pids");
  writeFileSync(pidFile, "");
  wrappers = [];
});

afterEach(() => {
  for (const wrapper of wrappers) wrapper.kill("SIGKILL");
  const left = recordedPids().filter(isAlive);
  for (const pid of left) process.kill(pid, "SIGKILL");
  expect(left).toEqual([]);
});

/** Pids that the scripts have written down; they are ours to end. */
function recordedPids(): number[] {
  return readFileSync(pidFile, "utf8").split("\n").filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  return processSystem.listProcesses(0).some((e) => e.pid === pid && e.state !== "zombie");
}

/** Runs a module in a process of its own; `start(script, capture)` starts a shell script as command there. */
function wrapper(body: string): ChildProcess {
  const url = (name: string) => pathToFileURL(join(build, "recipes/command", name)).href;
  const module = `
    import { startCommand } from "${url("running-command.js")}";
    import { forwardSignals } from "${url("forward-signals.js")}";
    const start = (script, capture = false) => startCommand({
      command: "sh", args: ["-c", script], env: process.env, capture, captureBytesMax: 2 ** 24,
    });
    ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", module], {
    env: { ...process.env, PIDS: pidFile },
    stdio: ["ignore", "pipe", "pipe"],
  });
  wrappers.push(child);
  return child;
}

/** What a wrapper has written when it has ended, and how it ended. */
async function ended(child: ChildProcess) {
  const texts: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
  child.stdout?.on("data", (chunk: Buffer) => texts.stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => texts.stderr.push(chunk));
  const [code, signal] = await once(child, "close");
  return {
    code,
    signal,
    stdout: Buffer.concat(texts.stdout),
    stderr: Buffer.concat(texts.stderr).toString(),
  };
}

describe("when our process ends while a command runs", () => {
  const script = [
    'echo $$ >>"$PIDS"',
    'sh -c \'echo $$ >>"$PIDS"; trap "" TERM; exec sleep 600\' &',
    'setsid sh -c \'echo $$ >>"$PIDS"; trap "" TERM; exec sleep 600\' &',
    "wait",
  ].join("\n");
  it.each([
    ["an uncaught exception", "setImmediate(() => { throw new Error('bug'); })", 1],
    ["an unhandled rejection", "Promise.reject(new Error('bug'))", 1],
    ["process.exit", "process.exit(9)", 9],
  ])("by %s, nothing of it is left behind", async (_how, end, code) => {
    const child = wrapper(`
      import { readFileSync } from "node:fs";
      await start(${JSON.stringify(script)});
      const timer = setInterval(() => {
        if (readFileSync(process.env.PIDS, "utf8").split("\\n").length < 4) return;
        clearInterval(timer);
        ${end};
      }, 10);`);
    expect((await ended(child)).code).toBe(code);
    expect(recordedPids().length).toBe(3);
    await vi.waitFor(() => expect(recordedPids().filter(isAlive)).toEqual([]), 10_000);
  });
});

describe("signals to our process", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const)(
    "%s is forwarded to the command, and starts no debugger",
    async (signal) => {
      const script = `trap 'echo trapped; exit 3' ${signal.slice(3)}; echo ready; while :; do sleep 0.05; done`;
      const child = wrapper(`
        const command = await start(${JSON.stringify(script)});
        const stop = forwardSignals((signal) => command.signal(signal));
        console.error("forwarding");
        const { code } = await command.exited;
        await command.treeGone();
        stop();
        process.exitCode = code;`);
      const result = ended(child);
      await Promise.all([said(child.stdout, "ready"), said(child.stderr, "forwarding")]);
      child.kill(signal);
      const { code, stdout, stderr } = await result;
      expect({ code, stdout: stdout.toString() }).toEqual({ code: 3, stdout: "ready\ntrapped\n" });
      expect(stderr).not.toContain("Debugger");
    },
  );

  it("end it again when the forwarding is taken back", async () => {
    const child = wrapper(`
      forwardSignals(() => console.error("forwarded"))();
      console.error("taken back");
      setInterval(() => {}, 1_000);`);
    const result = ended(child);
    await said(child.stderr, "taken back");
    child.kill("SIGTERM");
    const { signal, stderr } = await result;
    expect({ signal, stderr }).toEqual({ signal: "SIGTERM", stderr: "taken back\n" });
  });
});

function said(stream: ChildProcess["stdout"], text: string): Promise<void> {
  return new Promise((done) => {
    let seen = "";
    stream?.on("data", (chunk: Buffer) => {
      seen += chunk.toString();
      if (seen.includes(text)) done();
    });
  });
}

describe("the standard output of our process", () => {
  const everyByte = Buffer.alloc(2 ** 20, Uint8Array.from(Array(256).keys()));

  it.each([false, true])("is the command's, unchanged (captured: %s)", async (capture) => {
    const data = join(build, "data");
    writeFileSync(data, everyByte);
    const child = wrapper(`
      const command = await start("cat '${data}'", ${capture});
      await command.passedThrough();`);
    expect((await ended(child)).stdout.equals(everyByte)).toBe(true);
  });

  it("may be closed by its reader; a captured command runs on to its end", async () => {
    const go = join(build, "go");
    const script = `echo first; until [ -e '${go}' ]; do sleep 0.05; done; head -c 1000000 /dev/zero`;
    const child = wrapper(`
      const command = await start(${JSON.stringify(script)}, true);
      const { length } = await command.output();
      const { code } = await command.exited;
      console.error(JSON.stringify({ length, code, failure: command.passThroughFailure?.code }));`);
    const result = ended(child);
    await said(child.stdout, "first");
    child.stdout?.destroy();
    writeFileSync(go, "");
    expect(JSON.parse((await result).stderr)).toEqual({
      length: 1_000_006,
      code: 0,
      failure: "EPIPE",
    });
  });
});
