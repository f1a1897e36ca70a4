/**
 * Runs any command under a claim: started after the grant, told its token, stopped as a whole tree when the claim is
 * lost, and its output committed behind the fence. The claim is released only when the tree is gone.
 */
import type { ClaimLostError } from "../lib/errors.js";
import type { Claim } from "./claim.js";
import type { ExitStatus } from "./command/exit-status.js";
import { type RunningCommand, startCommand } from "./command/running-command.js";
import { type FencedRunAnswer, type FencedRunOptions, fencedRun } from "./fenced-run.js";

/** Largest result that is committed unless the caller says otherwise: 16 MiB. */
export const RESULT_BYTES_MAX = 16 * 1_024 ** 2;

/**
 * Once the claim is certainly lost another worker may run already, so the command gets only this long between TERM and
 * KILL, in milliseconds.
 */
const LOST_GRACE_MS = 200;

export interface CommandRunOptions extends FencedRunOptions {
  command: string;
  args: readonly string[];
  /** Environment of the command; the claim's variables are added. */
  env: NodeJS.ProcessEnv;
  /** Larger results are refused, not cut. Default 16 MiB. */
  resultBytesMax?: number;
  onEvent?: (event: CommandRunEvent) => void;
}

export type CommandRunEvent =
  | { kind: "granted"; claim: Claim }
  | { kind: "started"; command: RunningCommand }
  | { kind: "stopping"; error: ClaimLostError; graceMs: number }
  | { kind: "leftovers"; count: number };

export interface CommandRunAnswer {
  answer: FencedRunAnswer;
  /** How the command ended; undefined when it did not run. */
  status: ExitStatus | undefined;
}

/**
 * @throws CommandStartError when the command cannot be started
 * @throws ResultTooLargeError when its output is above the limit; nothing is committed
 * @throws what {@link fencedRun} throws
 */
export async function runCommand(options: CommandRunOptions): Promise<CommandRunAnswer> {
  let status: ExitStatus | undefined;
  const answer = await fencedRun(options, async (claim) => {
    options.onEvent?.({ kind: "granted", claim });
    const command = await startCommand({
      command: options.command,
      args: options.args,
      env: { ...options.env, ...claimVariables(claim) },
      capture: options.result !== undefined,
      captureBytesMax: options.resultBytesMax ?? RESULT_BYTES_MAX,
    });
    options.onEvent?.({ kind: "started", command });
    status = await untilGone(claim, command, options);
    if (options.result === undefined || status.code !== 0 || claim.signal.aborted) return undefined;
    return await command.output();
  });
  return { answer, status };
}

/** What the command is told about the claim that it runs under. */
function claimVariables({ job, token }: Claim): NodeJS.ProcessEnv {
  return {
    FENCEKEEPER_JOB: job,
    FENCEKEEPER_TOKEN: token.text,
    FENCEKEEPER_SEQUENCE: String(token.sequence),
  };
}

/** Waits until no process of the command's tree is left, and stops them all when the claim is lost. */
async function untilGone(
  claim: Claim,
  command: RunningCommand,
  { onEvent }: CommandRunOptions,
): Promise<ExitStatus> {
  let stopping: Promise<void> | undefined;
  const stop = () => {
    const error = claim.signal.reason as ClaimLostError; // the only reason a claim's signal has
    const graceMs =
      error.reason === "deadline" ? claim.stopGraceMs : Math.min(claim.stopGraceMs, LOST_GRACE_MS);
    onEvent?.({ kind: "stopping", error, graceMs });
    stopping = command.stopTree({ graceMs });
  };
  claim.signal.addEventListener("abort", stop, { once: true });
  if (claim.signal.aborted) stop();
  try {
    const status = await command.exited;
    const count = await command.treeGone();
    await stopping;
    if (count > 0 && !claim.signal.aborted) onEvent?.({ kind: "leftovers", count });
    return status;
  } finally {
    claim.signal.removeEventListener("abort", stop);
  }
}
