/**
 * What stands for a key or a job id in events: there are too many of them to name each. Pure.
 */

/** Gives the same short text for all names of a kind. */
export type PrefixOf = (name: string) => string;

/** Longest prefix in characters: a name without a colon may have any length. */
const PREFIX_LENGTH_MAX = 64;

/** The text before the first colon, without the brace of a hash tag: `report` of `report:2024` and of `{report:7}`. */
const prefixOf: PrefixOf = (name) => /^\{?([^:}]*)/.exec(name)?.[1] ?? "";

/** The prefix of a name. A function of the caller's that fails must not fail the work: the prefix is empty then. */
export function safePrefix(name: string, chosen: PrefixOf = prefixOf): string {
  try {
    return String(chosen(name)).slice(0, PREFIX_LENGTH_MAX);
  } catch {
    return ""; // telling is never worth an error
  }
}
