/**
 * The doctor's findings as a table for people, with the summary in the last line.
 */
import { type Finding, type Level, worstOf } from "../doctor/finding.js";

/** ANSI colours: green, cyan, yellow, red. */
const COLOURS: Record<Level, number> = { well: 32, note: 36, warning: 33, broken: 31 };

const WORDS: Record<Level, string> = {
  well: "the promise holds",
  note: "the promise holds",
  warning: "the promise holds until something goes wrong",
  broken: "the promise is broken",
};

export function describeFindings(findings: readonly Finding[], coloured: boolean): string {
  const paint = (level: Level, text: string) =>
    coloured ? `\x1b[${COLOURS[level]}m${text}\x1b[0m` : text;
  const width = (of: (finding: Finding) => string) =>
    Math.max(...findings.map((finding) => of(finding).length));
  const aboutWidth = width(({ about }) => about);
  const checkWidth = width(({ check }) => check);
  const margin = " ".repeat(LEVEL_WIDTH + aboutWidth + checkWidth + 6);
  const lines = findings.flatMap(({ level, about, check, found, why, fix }) => {
    const head = paint(level, level.padEnd(LEVEL_WIDTH));
    const row = `${head}  ${about.padEnd(aboutWidth)}  ${check.padEnd(checkWidth)}  ${found}`;
    if (level === "well") return [row];
    return [row, `${margin}why: ${why}`, ...(fix === undefined ? [] : [`${margin}fix: ${fix}`])];
  });
  const worst = worstOf(findings);
  return `${[...lines, paint(worst, summaryOf(findings))].join("\n")}\n`;
}

const LEVEL_WIDTH = "warning".length;

/** `1 broken, 2 warnings, 1 note, 14 well, 1 of them not seen: the promise is broken` */
export function summaryOf(findings: readonly Finding[]): string {
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length;
  const parts = [
    `${count("broken")} broken`,
    `${count("warning")} ${count("warning") === 1 ? "warning" : "warnings"}`,
    `${count("note")} ${count("note") === 1 ? "note" : "notes"}`,
    `${count("well")} well`,
  ];
  const unseen = findings.filter(({ seen }) => !seen).length;
  const blind = unseen === 0 ? "" : ` (${unseen} not seen)`;
  return `${parts.join(", ")}${blind}: ${WORDS[worstOf(findings)]}`;
}
