/**
 * Numbers for the writes of a claim, so that one which is late on its way cannot lie on top of a later one that was
 * made under the same token. A write that is sent again keeps its number.
 */
import type { Clock } from "../clock.js";

const DIGITS = 16;
const MICROSECONDS_PER_MS = 1_000;

/**
 * Makes numbers as 16 digits that rise from call to call. All processes of a machine share its monotonic clock, so that
 * the numbers of a claim rise also when a command under `run` makes some of them.
 */
export function writeOrders(clock: Clock): () => string {
  let last = 0;
  return () => {
    last = Math.max(last + 1, Math.floor(clock.nowMs() * MICROSECONDS_PER_MS));
    return String(last).padStart(DIGITS, "0");
  };
}
