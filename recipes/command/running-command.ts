/** A command that runs as a tree of processes, and the end of that tree. */
import type { ChildProcess } from "node:child_process";
import { OptionError } from "../../lib/errors.js";
import type { CapturedOutput } from "./captured-output.js";
import { guardExit } from "./exit-guard.js";
import type { ExitStatus } from "./exit-status.js";
import type { ProcessTree } from "./process-tree.js";
import {
  type CommandOptions,
  type CommandParts,
  type LeftoverTimes,
  spawnCommand,
} from "./spawn-command.js";
import { TreeEnding } from "./tree-ending.js";

/** The signals that are passed on to a command. */
export type ForwardedSignal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGUSR1" | "SIGUSR2";

export interface StopTreeOptions {
  /** Sent first; SIGTERM by default. */
  termSignal?: NodeJS.Signals;
  /** Time between that and KILL, in milliseconds, on the monotonic clock. */
  graceMs: number;
}

/**
 * Starts a command in a process group and session of its own. Standard input and standard error are ours; so is
 * standard output, unless it is captured.
 *
 * @throws CommandStartError with the exit status that shells give: 127 not found, 126 cannot be executed
 */
export async function startCommand(options: CommandOptions): Promise<RunningCommand> {
  return new RunningCommand(await spawnCommand(options));
}

export class RunningCommand {
  readonly pid: number;
  /** How the command itself ended; others of its tree may still be there. */
  readonly exited: Promise<ExitStatus>;
  readonly #tree: ProcessTree;
  readonly #ending: TreeEnding;
  readonly #output: CapturedOutput | undefined;
  readonly #gone: Promise<number>;

  constructor({ child, pid, tree, output, leftover, clock }: CommandParts) {
    this.pid = pid;
    this.#tree = tree;
    this.#output = output;
    this.#ending = new TreeEnding(tree, clock);
    this.exited = exitOf(child);
    const unguard = guardExit(() => endNow(tree));
    this.#gone = this.#endLeftovers(leftover).finally(unguard);
    this.#gone.catch(() => {}); // told by treeGone() and stopTree()
  }

  /** Passes a signal on to the command's process group; after its end nothing happens. */
  signal(name: ForwardedSignal): void {
    this.#tree.signalGroup(name);
  }

  /**
   * Ends the whole tree: a signal to everybody, KILL after the grace; resolves when every process is gone.
   *
   * @throws CommandNotStoppedError when processes are left that run as another user
   */
  stopTree({ termSignal = "SIGTERM", graceMs }: StopTreeOptions): Promise<void> {
    const stopped = this.#ending.end({ signal: termSignal, graceMs }).then(async () => {
      await this.#gone; // also our own child's end has been noticed then
    });
    stopped.catch(() => {}); // treeGone() rejects with the same, and may be what the caller waits for
    return stopped;
  }

  /**
   * Resolves when every process of the tree is gone. What is left when the command itself has ended is ended too,
   * as a service manager does: first a moment to settle, then TERM, a grace, KILL.
   *
   * @returns how many processes had to be ended that way
   * @throws CommandNotStoppedError when processes are left that run as another user
   */
  treeGone(): Promise<number> {
    return this.#gone;
  }

  /**
   * The whole captured output, once the tree is gone.
   *
   * @throws ResultTooLargeError above the limit: refused, never cut
   * @throws CommandOutputError when it cannot be known whether it is whole
   */
  async output(): Promise<Buffer> {
    if (!this.#output) throw new OptionError("the output of this command was not to be captured");
    await this.#gone;
    return this.#output.whole();
  }

  /**
   * Resolves when captured output has been passed through to its last byte, or cannot be any more. To be waited for
   * before this process exits, and after the claim is released: our reader may be slow.
   */
  async passedThrough(): Promise<void> {
    await this.#gone;
    await this.#output?.passedThrough();
  }

  /** Why captured output no longer reaches our standard output; undefined while it does. */
  get passThroughFailure(): Error | undefined {
    return this.#output?.passThroughFailure;
  }

  async #endLeftovers({ settleMs, graceMs }: LeftoverTimes): Promise<number> {
    await this.exited;
    return this.#ending.endLeftovers(settleMs, { signal: "SIGTERM", graceMs });
  }
}

function exitOf(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      resolve(signal === null ? { code: code ?? 0 } : { signal });
    });
  });
}

/** In the last moments of our own process: no grace, no waiting. */
function endNow(tree: ProcessTree): void {
  try {
    // Twice: the second look finds what was forked between the first look and its signals.
    tree.kill(tree.members());
    tree.kill(tree.members());
  } catch {
    tree.signalGroup("SIGKILL"); // looking failed; the group at least is reached without it
  }
}
