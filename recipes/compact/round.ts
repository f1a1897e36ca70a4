/**
 * One run of `compact`, round by round: the fences that were met, and what became of them. What makes the order right
 * is told in `compact.ts`.
 */
import { randomUUID } from "node:crypto";
import { floorKeyOf } from "../../lib/redis/fence-key.js";
import type { DropAnswer, FoundFence } from "../../lib/redis/fence-store.js";
import { askZooKeeper } from "../ask-zookeeper.js";
import type { CompactOptions, CompactReport, KeptWhy } from "./compact-options.js";
import { freshFloor } from "./fresh-floor.js";
import { liveJobs } from "./live-jobs.js";

const ANSWER_MS = 30_000;

/** Calls that are under way at the same time. */
const STEP_CALLS = 1_000;

export class Round {
  readonly report: CompactReport = {
    ...{ met: 0, dropped: 0, floorText: undefined },
    kept: { live: 0, result: 0, changed: 0, floor: 0, unreadable: 0 },
  };
  /** By key: a scan may give one again. */
  #fences = new Map<string, FoundFence>();
  readonly #id: string;

  constructor(readonly options: CompactOptions) {
    this.#id = (options.uuid ?? randomUUID)();
  }

  get size(): number {
    return this.#fences.size;
  }

  add(fence: FoundFence): void {
    if (this.#fences.has(fence.key)) this.report.met -= 1;
    else this.#fences.set(fence.key, fence);
  }

  keep(why: KeptWhy): void {
    this.report.kept[why] += 1;
  }

  tell(): void {
    this.options.onProgress?.(this.report);
  }

  async end(dryRun: boolean): Promise<void> {
    const met = [...this.#fences.values()];
    this.#fences = new Map();
    if (met.length === 0) return;
    const raised = dryRun ? undefined : await this.#raiseFloors(met);
    const live = await this.#ask("looking for claims", (session) =>
      liveJobs(session, this.options.root, new Set(met.map(({ job }) => job))),
    );
    const idle = met.filter(({ job }) => !live.has(job));
    this.report.kept.live += met.length - idle.length;
    if (raised === undefined) {
      this.report.dropped += idle.length;
      return;
    }
    await inSteps(
      idle,
      async ({ key, tokenText }) => {
        const { fences, signal, withResults = false } = this.options;
        const answer: DropAnswer = raised.keys.has(floorKeyOf(key))
          ? await fences.dropFence(
              { key, tokenText, floorText: raised.floorText, withResult: withResults },
              signal,
            )
          : "floor";
        if (answer === "dropped") this.report.dropped += 1;
        else this.keep(answer);
      },
      () => this.tell(),
    );
  }

  /** The floors that were raised; one that is higher already is another run's, which removes what is below it. */
  async #raiseFloors(met: FoundFence[]): Promise<{ floorText: string; keys: Set<string> }> {
    const { fences, root, era = 0, signal } = this.options;
    const floorText = await this.#ask("making a floor", (session) =>
      freshFloor({ session, root, era, id: this.#id }),
    );
    this.report.floorText = floorText;
    const keys = new Set<string>();
    await inSteps([...new Set(met.map(({ key }) => floorKeyOf(key)))], async (floorKey) => {
      if (await fences.raiseFloor(floorKey, floorText, signal)) keys.add(floorKey);
    });
    return { floorText, keys };
  }

  #ask<Answer>(what: string, step: Parameters<typeof askZooKeeper<Answer>>[1]): Promise<Answer> {
    const { zookeeper, answerMs = ANSWER_MS, signal } = this.options;
    return askZooKeeper({ zookeeper, answerMs, signal, what }, step);
  }
}

/** So many at a time. */
async function inSteps<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<void>,
  after = () => {},
): Promise<void> {
  for (let at = 0; at < items.length; at += STEP_CALLS) {
    await Promise.all(items.slice(at, at + STEP_CALLS).map(run));
    after();
  }
}
