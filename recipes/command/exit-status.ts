/** How a command ended. */
import { constants } from "node:os";

/** By itself with a code, or by a signal. */
export type ExitStatus =
  | { readonly code: number; readonly signal?: never }
  | { readonly code?: never; readonly signal: NodeJS.Signals };

/** The one number that shells make of it: the code, or 128 plus the signal's number. */
export function exitStatusNumber(status: ExitStatus): number {
  return status.code ?? 128 + constants.signals[status.signal];
}
