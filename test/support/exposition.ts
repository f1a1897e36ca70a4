/**
 * Reads Prometheus' text format, and takes nothing that its specification does not allow.
 */
import { expect } from "vitest";

export interface Exposition {
  /** By metric name. */
  types: Map<string, string>;
  helps: Map<string, string>;
  /** By name and labels, as in the text. */
  samples: Map<string, number>;
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`;
const SAMPLE = new RegExp(`^(${NAME})(\\{(?:${LABEL}(?:,${LABEL})*)?\\})? (\\S+)$`);
const NUMBER = /^[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)$/;

export function readExposition(text: string): Exposition {
  expect(text.endsWith("\n"), "the last line ends with a line feed").toBe(true);
  const found: Exposition = { types: new Map(), helps: new Map(), samples: new Map() };
  let family = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`).exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      const into = kind === "HELP" ? found.helps : found.types;
      expect(into.has(name), `${kind} of ${name} is given once`).toBe(false);
      into.set(name, rest);
      family = name;
      continue;
    }
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    expect(name, `not a line of the format: ${line}`).not.toBe("");
    const ending = found.types.get(family) === "histogram" ? "(?:_bucket|_sum|_count)" : "";
    expect(name, "samples stand below their type").toMatch(new RegExp(`^${family}${ending}$`));
    expect(value, line).toMatch(NUMBER);
    expect(found.samples.has(name + labels), `${name}${labels} is given once`).toBe(false);
    found.samples.set(name + labels, Number(value));
  }
  return found;
}
