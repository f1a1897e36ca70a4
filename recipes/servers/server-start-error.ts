/** The fault of a server that is there but does not come up. */
import { FencekeeperError } from "../../lib/errors.js";

/** A server was started and ended again, or did not answer in time; the message has the end of its log. */
export class ServerStartError extends FencekeeperError {
  readonly code = "SERVER_NOT_STARTED";
}
