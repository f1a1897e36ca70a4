/**
 * The invariants of the sink: what was accepted, in the sink's own order, against what the workers were told and did.
 */
import type { SimulatedStore } from "./simulated-store.js";

/** The end of a value, where it says under which token it was computed. */
const UNDER = / under (\S+)$/;

export class WriteChecks {
  readonly #acknowledged = new Set<string>();
  /** Fenced work that has begun, and how many writes had been accepted then. */
  readonly #begun: { token: string; accepted: number }[] = [];

  constructor(readonly world: { readonly store: SimulatedStore; violated(what: string): void }) {}

  /** Work under a token begins, and the fence has been raised to it: from now on nothing older may be accepted. */
  begins(token: string): void {
    this.#begun.push({ token, accepted: this.world.store.accepted.length });
  }

  acknowledged(token: string): void {
    this.#acknowledged.add(token);
  }

  checkEnd(): void {
    const { store } = this.world;
    const violated = (what: string) => this.world.violated(what);
    store.accepted.forEach(({ tokenText, value }, index) => {
      const before = store.accepted[index - 1]?.tokenText ?? "";
      if (tokenText < before) violated(`a write under ${tokenText} lies on top of ${before}`);
      const under = UNDER.exec(value ?? "")?.[1] ?? tokenText;
      if (under !== tokenText) {
        violated(`what was written under ${tokenText} was computed under ${under}`);
      }
    });
    for (const { token, accepted } of this.#begun) {
      const older = store.accepted.slice(accepted).find(({ tokenText }) => tokenText < token);
      if (older !== undefined) {
        violated(`a write under ${older.tokenText} came after the work under ${token} began`);
      }
    }
    const tokens = new Set(store.accepted.map(({ tokenText }) => tokenText));
    for (const token of this.#acknowledged) {
      if (!tokens.has(token)) violated(`${token} was acknowledged and never accepted`);
    }
  }
}
