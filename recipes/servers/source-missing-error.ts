/** Why servers cannot come from one source, so that the next one is tried. */
import { ServersMissingError } from "../../lib/errors.js";

export class SourceMissingError extends ServersMissingError {}
