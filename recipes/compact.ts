/**
 * Removes the fences of finished jobs, so that they do not fill Redis for ever, and lets no old token in.
 *
 * A fence that is gone is stood for by the floor of its slot: where a key has no fence, a token that is not above the
 * floor is refused, unless ZooKeeper says that its claim is held *now*, after the floor was raised. Fences go in
 * rounds, and the order of a round is what makes it right:
 *
 * 1. Fences are met, and their tokens noted.
 * 2. A fresh floor is made of ZooKeeper's last transaction: it is above all of them, and above every floor before.
 * 3. The floors of their slots are raised to it.
 * 4. ZooKeeper is asked which of their jobs have contenders; the fences of those stay.
 * 5. Each other fence is removed, if it still has the token that was noted and the floor is still this one.
 *
 * Why no old token gets in: whoever is found alive after step 3 is the newest of its job. A newer claim was granted
 * later than that, so its token was not noted in step 1, and its fence is not removed under this floor. Under a later
 * floor, the old one has to be found alive again, and is not.
 *
 * A run that is ended in the middle leaves higher floors, which cost a claim one question; the next run meets what
 * is left.
 */
import { setMaxListeners } from "node:events";
import { OptionError } from "../lib/errors.js";
import { makeToken } from "../lib/token.js";
import { claimsPath } from "../lib/zookeeper/paths.js";
import type { CompactOptions, CompactReport } from "./compact/compact-options.js";
import { Round } from "./compact/round.js";

export type { CompactOptions, CompactReport, KeptWhy } from "./compact/compact-options.js";

const ROUND_FENCES = 50_000;

/**
 * @throws OptionError when an option cannot be used
 * @throws ConfigurationError when nobody has ever claimed below the root
 * @throws the errors of the sink and of ZooKeeper; run it again, and it goes on with what is left
 * @throws the signal's reason when it aborts
 */
export async function compact(options: CompactOptions): Promise<CompactReport> {
  const { fences, dryRun = false, withResults = false } = options;
  const { roundFences = ROUND_FENCES, era = 0, root } = options;
  makeToken({ era, generation: 0n, sequence: 0 }); // tells at once what is wrong with the era
  claimsPath(root);
  if (!Number.isSafeInteger(roundFences) || roundFences < 1) {
    throw new OptionError(`roundFences must be a whole number from 1; it is ${roundFences}`);
  }
  const signal = options.signal && AbortSignal.any([options.signal]);
  if (signal !== undefined) setMaxListeners(0, signal); // many calls are under way at once
  const round = new Round({ ...options, ...(signal && { signal }) });
  for await (const page of fences.pages(signal)) {
    for (const each of page) {
      round.report.met += 1;
      if (each instanceof Error) round.keep("unreadable");
      else if (each.hasResult && !withResults) round.keep("result");
      else round.add(each);
    }
    round.tell();
    if (round.size >= roundFences) await round.end(dryRun);
  }
  await round.end(dryRun);
  return round.report;
}
