/**
 * Keeps the number of different label values bounded: each costs a time series for ever, in this process and in
 * whatever collects them.
 */
import { OptionError } from "../../lib/errors.js";

const OTHER = "(other)";

export class LimitedNames {
  readonly #max: number;
  readonly #known = new Set<string>();

  /** @throws OptionError when the limit is not a whole number from 1 */
  constructor(max: number) {
    if (!Number.isSafeInteger(max) || max < 1) {
      throw new OptionError(`prefixesMax must be a whole number from 1; it is ${max}`);
    }
    this.#max = max;
  }

  /** The name itself while there are few, else a name for all others. */
  limited(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= this.#max) return OTHER;
    this.#known.add(name);
    return name;
  }
}
