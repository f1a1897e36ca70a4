/**
 * Asks for a write until it is answered: with what is known of the claim's fences at each attempt, a large value put
 * apart before it, and what is to be waited for after it.
 */
import { randomUUID } from "node:crypto";
import type { CallOptions, ClaimIdentity, WriteIdentity } from "../sink.js";
import { Again, type Asked, ask } from "./ask.js";
import type { Limits, ScriptRequest, ScriptValues } from "./attempt.js";
import { type DurabilityOptions, reached, waitFor } from "./durability.js";
import { stageKeyOf } from "./fence-key.js";
import { FencedWrite, type Proof, type Said } from "./fenced-write.js";
import type { HeldFences, RaisedAgain } from "./held-fences.js";
import type { ScriptName } from "./script-files.js";

/** One write: what it sends for what is known, and what a reply to it says. */
export interface Writing<Answer> {
  identity: ClaimIdentity;
  script: ScriptName;
  keys: string[];
  values: (proofOf: (key: string) => Proof) => ScriptValues | Promise<ScriptValues>;
  stage?: Buffer | undefined;
  said: (reply: unknown) => Said<Answer> | { outcome: "unstaged" };
  stale: (key: string, fenceText: string) => Answer;
}

/** How long a value that was put apart waits for its script. */
const STAGE_TTL_MS = 60_000;

/** Answers after which there is something to wait for. */
const ACCEPTED = new Set(["advanced", "current", "committed", "duplicate", "invalidated"]);

export interface WriteAskingOptions {
  connection: Asked<ScriptRequest>;
  fences: HeldFences;
  durability: DurabilityOptions | undefined;
  limitsOf: (call?: CallOptions) => Limits;
  /** Raises the fences of all claims again. */
  raiseAll: () => Promise<void>;
}

type Advancing = (identity: WriteIdentity) => Writing<{ outcome: string }>;

export class WriteAsking {
  #raising: Promise<void> | undefined;

  constructor(readonly options: WriteAskingOptions) {}

  write<Answer extends { outcome: string }>(
    writing: Writing<Answer>,
    limits: Limits,
  ): Promise<Answer> {
    const question = this.#questionOf(writing, this.#fencedWrite(writing));
    return ask(this.options.connection, question, limits);
  }

  #questionOf<Answer extends { outcome: string }>(
    { script, keys, values, stage, said }: Writing<Answer>,
    write: FencedWrite<Answer>,
  ) {
    const { durability } = this.options;
    const wait = durability && waitFor(durability);
    return {
      request: (): ScriptRequest => {
        const request = { script, keys, values: values((key) => write.proofOf(key)) };
        return {
          ...(stage === undefined ? request : { ...request, ...staged(keys, stage) }),
          ...(wait && { wait }),
        };
      },
      writes: true,
      answerOf: (reply: unknown, waited: unknown): Answer | Again => {
        const what = said(reply);
        if (what.outcome === "unstaged") return new Again(async () => {});
        const answer = write.settle(what as Said<Answer>); // what is unstaged is dealt with
        if (durability === undefined || answer instanceof Again) return answer;
        return ACCEPTED.has(answer.outcome)
          ? { ...answer, durability: reached(durability, waited) }
          : answer;
      },
    };
  }

  #fencedWrite<Answer extends { outcome: string }>({ identity, stale: refuse }: Writing<Answer>) {
    const { fences, raiseAll } = this.options;
    return new FencedWrite<Answer>({ identity, fences, raiseAll, stale: refuse });
  }

  /**
   * Raises the fences of all claims again. Writes that find theirs gone at the same time wait for the same.
   *
   * @param connection the one to ask; default: the sink's
   */
  raiseAll(advancing: Advancing, connection = this.options.connection): Promise<void> {
    this.#raising ??= this.options.fences
      .raiseAll((identity) => this.#raiseAgain(advancing(identity), connection))
      .finally(() => {
        this.#raising = undefined;
      });
    return this.#raising;
  }

  async #raiseAgain(
    writing: ReturnType<Advancing>,
    connection: Asked<ScriptRequest>,
  ): Promise<RaisedAgain> {
    const write = this.#fencedWrite(writing);
    const question = this.#questionOf(writing, write);
    const { outcome } = await ask(connection, question, this.options.limitsOf());
    if (outcome !== "advanced") return "kept";
    return write.metFloor ? "compacted" : "lost";
  }
}

/** A place of its own for each attempt, so that no two can mix. */
function staged(keys: string[], value: Buffer): Pick<ScriptRequest, "keys" | "stage"> {
  const key = stageKeyOf(keys[0] ?? "", randomUUID());
  return { keys: [...keys, key], stage: { key, value, ttlMs: STAGE_TTL_MS } };
}
