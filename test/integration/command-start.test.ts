import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CommandStartError } from "../../lib/errors.js";
import { exitStatusNumber } from "../../recipes/command/exit-status.js";
import { processSystem } from "../../recipes/command/process-system.js";
import { startCommand } from "../../recipes/command/running-command.js";

let folder: string;
let discard: number;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "fencekeeper-"));
  discard = openSync("/dev/null", "w");
});

afterAll(() => {
  closeSync(discard);
  rmSync(folder, { recursive: true });
});

async function start(words: [string, ...string[]], env: NodeJS.ProcessEnv = process.env) {
  const [command, ...args] = words;
  const options = { command, args, env, capture: true, captureBytesMax: 1_000_000 };
  return startCommand({ ...options, stdoutFd: discard });
}

async function outputOf(words: [string, ...string[]], env?: NodeJS.ProcessEnv): Promise<string> {
  const command = await start(words, env);
  return (await command.output()).toString();
}

describe("the exit status of a command", () => {
  it.each([0, 1, 42, 126, 255])("is its own code: %i", async (code) => {
    const command = await start(["sh", "-c", `exit ${code}`]);
    expect(exitStatusNumber(await command.exited)).toBe(code);
    await command.treeGone();
  });

  it.each([
    ["HUP", 129],
    ["KILL", 137],
    ["TERM", 143],
  ])("is 128 and the signal's number after SIG%s: %i", async (name, number) => {
    const command = await start(["sh", "-c", `kill -${name} $$`]);
    expect(exitStatusNumber(await command.exited)).toBe(number);
    await command.treeGone();
  });

  const refusals: [string, () => string, number][] = [
    ["127 for a name that is not in the PATH", () => "fencekeeper-no-such-command", 127],
    ["127 for a path that is not there", () => join(folder, "missing"), 127],
    ["127 for an empty name", () => "", 127],
    ["127 for a missing interpreter", () => script("interpreter", "#!/missing/sh\n", 0o755), 127],
    ["126 for a file that is not executable", () => script("plain", "#!/bin/sh\n", 0o644), 126],
    ["126 for a folder", () => folder, 126],
    ["126 for a path through a file", () => join(script("file", "", 0o644), "x"), 126],
    ["126 for a name with a NUL byte", () => "sh\0", 126],
  ];
  it.each(refusals)("is %s", async (_title, command, exitStatus) => {
    const failure = await start([command()]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CommandStartError);
    expect(failure).toMatchObject({ exitStatus });
  });

  it("is 126 when the arguments are too long for the system", async () => {
    const failure = await start(["true", "x".repeat(2 ** 22)]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ exitStatus: 126, code: "COMMAND_NOT_STARTED" });
  });
});

function script(name: string, text: string, mode: number): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

describe("a command is started", () => {
  it("with its arguments unchanged", async () => {
    const args = ["", " ", "a b", "$HOME", "'\"", "*", "line\nbreak", "-x", "ü€😀"];
    const program = "process.stdout.write(JSON.stringify(process.argv.slice(1)))";
    expect(JSON.parse(await outputOf([process.execPath, "-e", program, "--", ...args]))).toEqual(
      args,
    );
  });

  it("with the environment that it is given, the marker, and nothing else", async () => {
    const output = await outputOf([process.execPath, "-p", "JSON.stringify(process.env)"], {
      A: "1",
    });
    expect(JSON.parse(output)).toEqual({ A: "1", FENCEKEEPER_RUN: expect.any(String) });
  });

  it("with the marker of an outer run kept in front of its own", async () => {
    const env = { ...process.env, FENCEKEEPER_RUN: "outer" };
    expect(await outputOf(["sh", "-c", 'echo "$FENCEKEEPER_RUN"'], env)).toMatch(
      /^outer:[0-9a-f-]{36}\n$/,
    );
  });

  it("along the PATH of its own environment", async () => {
    script("only-here", "#!/bin/sh\necho found\n", 0o755);
    expect(await outputOf(["only-here"], { PATH: folder })).toBe("found\n");
  });

  it("in a process group and session of its own", async () => {
    const command = await start(["sleep", "600"]);
    const entry = processSystem.listProcesses(0).find(({ pid }) => pid === command.pid);
    await command.stopTree({ graceMs: 0 });
    expect(entry).toMatchObject({ groupId: command.pid, sessionId: command.pid });
  });

  it("with the default action for SIGPIPE, so that its own pipelines end as in a shell", async () => {
    const masks = await outputOf(["cat", "/proc/self/status"]);
    const ignored = Number.parseInt(/^SigIgn:\s*([0-9a-f]+)$/m.exec(masks)?.[1] ?? "", 16);
    expect(ignored & (1 << 12)).toBe(0);
  });

  it("and leaves no zombie", async () => {
    const command = await start(["true"]);
    await command.treeGone();
    expect(() => readFileSync(`/proc/${command.pid}/stat`)).toThrow("ENOENT");
  });
});
