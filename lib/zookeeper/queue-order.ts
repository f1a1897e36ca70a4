/**
 * Who is first and who waits for whom, decided from one listing. Pure: no request is made here.
 */
import { type ContenderName, parseContenderName } from "./znode-name.js";

/** A listing of a claim path, sorted out. */
export interface Queue {
  /** In order of their sequence: the first one holds the claim. */
  contenders: ContenderName[];
  /** Names that are nobody's contender. */
  foreign: string[];
}

/** Where one contender stands. */
export type Position =
  /** Present, and nobody has a lower sequence. */
  | { kind: "first"; own: ContenderName }
  /** Behind `ahead` others; `predecessor` is the nearest of them and the only one to watch. */
  | { kind: "behind"; own: ContenderName; predecessor: ContenderName; ahead: number }
  /** Not in the listing: the znode is gone. */
  | { kind: "missing" };

export function readQueue(children: readonly string[]): Queue {
  const contenders: ContenderName[] = [];
  const foreign: string[] = [];
  for (const name of children) {
    const contender = parseContenderName(name);
    if (contender === undefined) foreign.push(name);
    else contenders.push(contender);
  }
  contenders.sort((a, b) => a.sequence - b.sequence);
  return { contenders, foreign };
}

/**
 * The position of the contender with this name. Another contender with the same sequence counts as ahead: the server
 * gives one number twice only at the end of its counter, where nothing is granted.
 */
export function positionOf(queue: Queue, ownName: string): Position {
  const own = queue.contenders.find(({ name }) => name === ownName);
  if (own === undefined) return { kind: "missing" };
  const ahead = queue.contenders.filter(
    ({ name, sequence }) => name !== ownName && sequence <= own.sequence,
  );
  const predecessor = ahead.at(-1);
  if (predecessor === undefined) return { kind: "first", own };
  return { kind: "behind", own, predecessor, ahead: ahead.length };
}
