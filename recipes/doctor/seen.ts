/**
 * Turns a read that failed into a fact of its own: what we were not shown, and why.
 */
import { FencekeeperError } from "../../lib/errors.js";
import { type Seen, Unseen } from "./finding.js";

/** The value, or why we did not get it. What is no fault of ours or of a server is thrown on. */
export async function seen<T>(reading: Promise<T>): Promise<Seen<T>> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof FencekeeperError) return new Unseen(error.message);
    throw error;
  }
}
