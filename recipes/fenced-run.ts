/**
 * The one-call recipe: claim the job, raise the fence, run the handler, commit its result behind the fence, release.
 * The order is the point: the fence is raised before the work starts, and the sink compares the token at the write.
 */
import { ClaimLostError, SinkOutcomeUnknownError } from "../lib/errors.js";
import type { CommitAnswer, PresentResult, Sink } from "../lib/sink.js";
import type { FencingToken } from "../lib/token.js";
import { defaultHolder } from "./claim/holder.js";
import { type Claim, type ClaimOptions, claim as claimJob } from "./claim.js";

/** Where the result goes. */
export interface ResultTarget {
  sink: Sink;
  /** The result's key; existing readers go on with GET. */
  key: string;
  /** Milliseconds until the result expires; none keeps it. */
  ttlMs?: number;
  /**
   * Take a committed result that is there already instead of running the handler: `any`, or one that is younger than
   * `maxAgeMs`. Looked up after the grant and the raised fence. Default: run each time.
   */
  accept?: "any" | { maxAgeMs: number };
}

export interface FencedRunOptions extends ClaimOptions {
  result?: ResultTarget;
}

/**
 * The work. What it returns is committed; `undefined` commits nothing. It should stop when `claim.signal` aborts.
 */
export type Handler = (claim: Claim) => Promise<Uint8Array | string | undefined>;

export type FencedRunAnswer =
  /** Somebody else holds the claim, and did so until `waitMs` was over. The handler did not run. */
  | { outcome: "busy"; holder: string; ahead: number }
  /** A result that the caller accepts was there already. The handler did not run. */
  | { outcome: "present"; token: FencingToken; present: PresentResult }
  /** The handler ended and there was nothing to commit. */
  | { outcome: "done"; token: FencingToken }
  /** The claim was lost before the result was committed; nothing was written. */
  | { outcome: "lost"; token: FencingToken; error: ClaimLostError }
  /** What the sink said to the commit, or to raising the fence: `stale` and `foreign` come from either. */
  | (CommitAnswer & { token: FencingToken });

/**
 * Runs a handler under a claim and commits its result behind the fence.
 *
 * @throws what the handler throws, after the claim was released (unless the claim was lost: then the answer is `lost`)
 * @throws the errors of claiming and of the sink; `definite` tells whether a write is known not to have happened
 */
export async function fencedRun(
  options: FencedRunOptions,
  handler: Handler,
): Promise<FencedRunAnswer> {
  const { result, ...claimOptions } = options;
  const answer = await claimJob(claimOptions);
  if (answer.outcome === "busy") return answer;
  await using claim = answer.claim;
  const holder = options.holder ?? defaultHolder();
  return await runHeld({ claim, signal: options.signal, result, holder }, handler);
}

interface Held {
  claim: Claim;
  /** The caller's: gives up until the handler has started. */
  signal: AbortSignal | undefined;
  result: ResultTarget | undefined;
  holder: string;
}

async function runHeld(held: Held, handler: Handler): Promise<FencedRunAnswer> {
  const { claim, result } = held;
  const { token } = claim;
  let letGo = () => {};
  try {
    const ended = result && (await raiseFence(held, result));
    if (ended !== undefined) return ended;
    if (result !== undefined) {
      letGo = result.sink.keepRaised({ ...identityOf(held), key: result.key });
    }
    held.signal?.throwIfAborted();
    const value = await handler(claim);
    const lost = lossOf(claim);
    if (lost !== undefined) return { outcome: "lost", token, error: lost };
    if (result === undefined || value === undefined) return { outcome: "done", token };
    const { sink, key, ttlMs } = result;
    const request = { ...identityOf(held), key, value };
    const commit = ttlMs === undefined ? request : { ...request, ttlMs };
    return { ...(await sink.commitResult(commit)), token };
  } catch (error) {
    // A handler that was told to stop may end in any way it likes; an error of the sink tells what became of a write.
    const lost = error instanceof SinkOutcomeUnknownError ? undefined : lossOf(claim, error);
    if (lost === undefined) throw error;
    return { outcome: "lost", token, error: lost };
  } finally {
    letGo();
  }
}

/** Raises the fence before anything is read or done; gives an answer when the handler need not or must not run. */
async function raiseFence(
  held: Held,
  { sink, key, accept }: ResultTarget,
): Promise<FencedRunAnswer | undefined> {
  const { token } = held.claim;
  const signals = held.signal === undefined ? [] : [held.signal];
  const signal = AbortSignal.any([held.claim.signal, ...signals]);
  const raised = await sink.advanceFence({ ...identityOf(held), key }, { signal });
  if (raised.outcome === "stale" || raised.outcome === "foreign") return { ...raised, token };
  if (raised.outcome === "observed" || raised.present === undefined) return undefined;
  const { present } = raised;
  if (accept === undefined) return undefined;
  const isYoung = accept === "any" || present.ageMs < accept.maxAgeMs;
  if (!isYoung) return undefined;
  // The fence describes what was committed; what is at the key may be somebody else's plain SET by now.
  const { matches } = await sink.readResult(key, { signal });
  return matches ? { outcome: "present", token, present } : undefined;
}

function identityOf({ claim, holder }: Held) {
  const confirm = (signal: AbortSignal | undefined) => claim.confirm(signal);
  return { job: claim.job, token: claim.token, holder, confirm };
}

/** The loss of the claim, if it is lost: also when the process was stopped and has not been told yet. */
function lossOf(claim: Claim, cause?: unknown): ClaimLostError | undefined {
  const { reason } = claim.signal;
  if (reason instanceof ClaimLostError) return reason;
  if (claim.remainingMs() > 0) return undefined;
  const message = `the claim of job ${JSON.stringify(claim.job)} ran past its local deadline`;
  return new ClaimLostError(message, "deadline", { cause });
}
