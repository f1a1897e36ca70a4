/**
 * What the doctor says: one finding a check, and what all of them come to. Pure.
 */

/**
 * `broken`: the promise does not hold, or there can be no claim or commit. `warning`: it holds until something goes
 * wrong. `note`: worth to know. `well`: nothing to do.
 */
export type Level = "well" | "note" | "warning" | "broken";

export interface Finding {
  about: "redis" | "zookeeper" | "both";
  /** A stable name, for programs. */
  check: string;
  level: Level;
  /** False when the check could not be made; `found` says why. */
  seen: boolean;
  found: string;
  why: string;
  /** One line that puts it right; undefined where nothing has to be. */
  fix: string | undefined;
}

/** One check: its name and why it matters, from which its findings are made. */
export class Check {
  constructor(
    readonly about: Finding["about"],
    readonly name: string,
    readonly why: string,
  ) {}

  well(found: string): Finding {
    return this.#finding("well", found, undefined);
  }

  note(found: string, fix?: string): Finding {
    return this.#finding("note", found, fix);
  }

  warning(found: string, fix: string): Finding {
    return this.#finding("warning", found, fix);
  }

  broken(found: string, fix: string): Finding {
    return this.#finding("broken", found, fix);
  }

  /** The check could not be made. */
  unseen({ reason }: Unseen, fix: string, level: "note" | "warning" = "warning"): Finding {
    return { ...this.#finding(level, `not seen: ${reason}`, fix), seen: false };
  }

  #finding(level: Level, found: string, fix: string | undefined): Finding {
    return { about: this.about, check: this.name, level, seen: true, found, why: this.why, fix };
  }
}

/** In the place of a fact that we were not shown. */
export class Unseen {
  constructor(readonly reason: string) {}
}

export type Seen<T> = T | Unseen;

const ORDER: readonly Level[] = ["well", "note", "warning", "broken"];

/** The worst level among the findings. */
export function worstOf(findings: readonly Finding[]): Level {
  const worst = Math.max(0, ...findings.map(({ level }) => ORDER.indexOf(level)));
  return ORDER[worst] ?? "well";
}

/** A few names, and how many more there are. */
export function named(names: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => JSON.stringify(name));
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

/** `1 key`, `2 keys`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
