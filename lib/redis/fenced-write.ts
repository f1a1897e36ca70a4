/**
 * What a fenced write does about replies that are not its answer: a fence that was lost is raised again, with those of
 * all other claims, before anything is written; a claim that comes below the floor has to be found alive.
 */
import type { ClaimIdentity } from "../sink.js";
import { Again } from "./ask.js";
import type { HeldFences } from "./held-fences.js";

/** What a reply says: the answer, or what has to be done first. */
export type Said<Answer> = Answer | Lost | BelowFloor;

/** The fence was raised before, and is gone or has come down. */
export interface Lost {
  outcome: "lost";
}

/** There is no fence, and one as old may have been removed. */
export interface BelowFloor {
  outcome: "floor";
  key: string;
  floorText: string;
}

/** What a request says about a key: both are facts that the sink cannot see by itself. */
export interface Proof {
  /** The fence was raised to the token before. */
  raised: boolean;
  /** The floor since which the claim has been found alive; empty when it has not been asked. */
  alive: string;
}

export interface FencedWriteOptions<Answer> {
  identity: ClaimIdentity;
  fences: HeldFences;
  /** Raises the fences of all claims again. */
  raiseAll: () => Promise<void>;
  /** The answer of a claim that is not alive, or cannot be asked. */
  stale: (key: string, floorText: string) => Answer;
}

/** One write with all its repeats. */
export class FencedWrite<Answer extends { outcome: string }> {
  readonly #alive = new Map<string, string>();

  constructor(readonly options: FencedWriteOptions<Answer>) {}

  /** Whether a floor came in its way. */
  get metFloor(): boolean {
    return this.#alive.size > 0;
  }

  proofOf(key: string): Proof {
    const { identity, fences } = this.options;
    const raised = fences.isKept({ ...identity, key });
    return { raised, alive: this.#alive.get(key) ?? "" };
  }

  /** The answer, or what has to be done before the same write is asked for again. */
  settle(said: Said<Answer>): Answer | Again {
    if (said.outcome === "lost") return new Again(() => this.options.raiseAll());
    if (said.outcome !== "floor") return said as Answer; // the two others are dealt with
    const { key, floorText } = said as BelowFloor;
    const { confirm } = this.options.identity;
    if (confirm === undefined) return this.options.stale(key, floorText);
    return new Again(async ({ signal }) => {
      await confirm(signal);
      this.#alive.set(key, floorText);
    });
  }
}
