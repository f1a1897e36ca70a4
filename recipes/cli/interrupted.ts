/**
 * The end of a command that a signal interrupted before it had anything to pass the signal on to.
 */
import { constants } from "node:os";
import { Exit } from "./exit.js";

export class Interrupted extends Exit {
  constructor(readonly signal: NodeJS.Signals) {
    super(128 + constants.signals[signal], `interrupted by ${signal}`, "INTERRUPTED");
  }
}
