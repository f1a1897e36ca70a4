/** Starts the command's first process, so that its tree can be found again. */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../lib/clock.js";
import { ConfigurationError } from "../../lib/errors.js";
import { CapturedOutput } from "./captured-output.js";
import { MARKER_NAME, markerWith } from "./process-marker.js";
import { processSystem } from "./process-system.js";
import { ProcessTree } from "./process-tree.js";
import { commandStartError } from "./start-error.js";

/** What is done with processes that are left when the command itself has ended; milliseconds. */
export interface LeftoverTimes {
  /** They may end by themselves first: what reads the command's output has to finish that. */
  settleMs: number;
  /** Between TERM and KILL. */
  graceMs: number;
}

const LEFTOVER_TIMES: LeftoverTimes = { settleMs: 250, graceMs: 5_000 };

export interface CommandOptions {
  /** A path, or a name that is looked for along the PATH in `env`. */
  command: string;
  args: readonly string[];
  /** The complete environment; the marker is added. */
  env: NodeJS.ProcessEnv;
  /** Keeps standard output while it is passed through. */
  capture: boolean;
  captureBytesMax: number;
  /** Where the command's standard output goes; our own by default. */
  stdoutFd?: number;
  leftover?: LeftoverTimes;
  clock?: Clock;
}

/** What has been started. */
export interface CommandParts {
  child: ChildProcess;
  pid: number;
  tree: ProcessTree;
  output: CapturedOutput | undefined;
  leftover: LeftoverTimes;
  clock: Clock;
}

/** @throws CommandStartError, or ConfigurationError where processes cannot be listed */
export async function spawnCommand(options: CommandOptions): Promise<CommandParts> {
  const { capture, stdoutFd = 1, leftover = LEFTOVER_TIMES, clock = systemClock } = options;
  // Without a process table it could never be said that the tree is gone; better not to start then.
  if (processSystem.startedAt(process.pid) === undefined) {
    throw new ConfigurationError(
      "the list of processes cannot be read (is /proc mounted?), and without it no command can be stopped safely",
    );
  }
  const runId = randomUUID();
  const child = spawnNow(options, runId, ["inherit", capture ? "pipe" : stdoutFd, "inherit"]);
  const pid = child.pid;
  // Before anything is awaited: our child keeps its pid, even if it has ended, until the event loop turns.
  const startedAt = pid === undefined ? undefined : processSystem.startedAt(pid);
  await spawned(child, options.command);
  if (pid === undefined || startedAt === undefined) {
    child.kill("SIGKILL");
    throw new ConfigurationError("the command started, but the list of processes does not show it");
  }
  const tree = new ProcessTree({
    system: processSystem,
    leaderPid: pid,
    leaderStartedAt: startedAt,
    runId,
  });
  const output = child.stdout
    ? new CapturedOutput({
        stream: child.stdout,
        passThroughFd: stdoutFd,
        bytesMax: options.captureBytesMax,
        clock,
      })
    : undefined;
  return { child, pid, tree, output, leftover, clock };
}

function spawnNow(options: CommandOptions, runId: string, stdio: StdioOptions): ChildProcess {
  const { command, args, env } = options;
  const marked = { ...env, [MARKER_NAME]: markerWith(env[MARKER_NAME], runId) };
  try {
    return spawn(command, args, { env: marked, stdio, detached: true });
  } catch (error) {
    throw commandStartError(command, error); // some failures are thrown, others come as an event
  }
}

function spawned(child: ChildProcess, command: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(commandStartError(command, error)));
  });
}
