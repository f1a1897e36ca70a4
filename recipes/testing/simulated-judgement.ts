/**
 * Whether a commit is one that was made before, is refused, or is to be written, by what the scripts' headers promise.
 */
import type { ClaimArguments, SimulatedEntry } from "./simulated-entry.js";

export interface JudgedCommit {
  /** What it is refused with. */
  refusal: [string, ...string[]] | undefined;
  /** The revision of the same write, when it was made before. */
  duplicateOf: string | undefined;
  /** The revision that it would have. */
  revision: string;
}

export function judgeCommit(
  entry: SimulatedEntry,
  { claim, digest, mode }: { claim: ClaimArguments; digest: string; mode: string },
): JudgedCommit {
  const { fence } = entry;
  const { order } = claim;
  const refusal = entry.refusalOf(claim);
  const first = { refusal, duplicateOf: undefined, revision: "1" };
  if (refusal !== undefined || fence?.token !== claim.token) return first;
  const isBehind = order !== "" && fence.order !== undefined && order < fence.order;
  const isAgain = order !== "" && order === fence.order;
  if (fence.state === "open") return isBehind ? { ...first, refusal: ["superseded"] } : first;
  const revision = fence.revision ?? "";
  if (fence.digest === digest) {
    // the same call again, or the same value once more, unless it renews what is there or puts back what is gone
    const isIdle = entry.isThere && (mode === "once" || order === "" || isBehind);
    if (isAgain || isIdle) return { ...first, duplicateOf: revision };
  } else if (mode === "once") return { ...first, refusal: ["conflict"] };
  if (isBehind) return { ...first, refusal: ["superseded"] };
  return { ...first, revision: String(Number(revision) + 1) };
}

/** Whether what would be refused goes on all the same, in observe mode. */
export function letThrough([code]: [string, ...string[]], policy: string): boolean {
  return policy === "observe" && code !== "lost" && code !== "corrupt";
}
