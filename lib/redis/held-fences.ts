/**
 * The fences that claims of this process have raised and rely on. A server that was restarted without its data, was
 * flushed, or took over without the last writes has lost them; then all of them are raised again.
 */
import type { WriteIdentity } from "../sink.js";

/** A fence that was raised, and was not there any more. */
export interface FenceLoss {
  key: string;
  job: string;
  /** Canonical text of the token to which it was raised again. */
  tokenText: string;
}

/** What became of raising a fence that was raised before. */
export type RaisedAgain =
  /** It was there, or a newer claim's is. */
  | "kept"
  /** It was gone or lower. */
  | "lost"
  /** It was gone, because `compact` took it for that of a finished job. */
  | "compacted";

interface Held {
  identity: WriteIdentity;
  /** How many have asked for it to be kept. */
  keepers: number;
}

export class HeldFences {
  readonly #held = new Map<string, Held>();

  constructor(readonly onLoss: (loss: FenceLoss) => void) {}

  /** Those that are kept now. */
  get all(): WriteIdentity[] {
    return Array.from(this.#held.values(), ({ identity }) => identity);
  }

  keep(identity: WriteIdentity): () => void {
    const name = nameOf(identity);
    const held = this.#held.get(name) ?? { identity: { ...identity }, keepers: 0 };
    held.keepers += 1;
    this.#held.set(name, held);
    let isKept = true;
    return () => {
      if (!isKept) return;
      isKept = false;
      held.keepers -= 1;
      if (held.keepers === 0) this.#held.delete(name);
    };
  }

  /** Whether this claim has raised the fence of the key, so that it must be there. */
  isKept(identity: WriteIdentity): boolean {
    return this.#held.has(nameOf(identity));
  }

  /**
   * Raises all of them, and tells which had been lost.
   *
   * @throws what raising one of them threw: nothing may be written before all are raised
   */
  async raiseAll(raise: (identity: WriteIdentity) => Promise<RaisedAgain>): Promise<void> {
    const raised = await Promise.all(
      this.all.map(async (identity) => ({ identity, became: await raise(identity) })),
    );
    for (const { identity, became } of raised) {
      const { key, job, token } = identity;
      if (became === "lost") this.onLoss({ key, job, tokenText: token.text });
    }
  }
}

function nameOf({ key, job, token }: WriteIdentity): string {
  return JSON.stringify([key, job, token.text]);
}
