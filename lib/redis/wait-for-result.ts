/**
 * Waits for a committed result without polling: the fence is watched, and when it has changed the result is read.
 *
 *   read ── there? ──> found
 *    │ no
 *   watch ──> read ──> wait for a change ──> read …
 *    ^                        │ watch lost
 *    └──────── read <─────────┘
 *
 * A watch always begins before the read that it is for, so a commit between the two is read or told of.
 */
import { settleWithin, TIMED_OUT, untilPassed } from "../deadline.js";
import { SinkUnreachableError } from "../errors.js";
import type { CommittedResult, ReadAnswer, WaitAnswer } from "../sink.js";
import { type FencingToken, parseToken } from "../token.js";
import type { Limits } from "./attempt.js";
import type { Watcher, Watching } from "./watcher.js";

export interface ResultWait {
  /** Begins to watch the fence. */
  watch: (watcher: Watcher, limits: Limits) => Promise<Watching>;
  read: (limits: Limits) => Promise<ReadAnswer>;
  /** Only the result of a newer token is waited for. */
  newerThan: FencingToken | undefined;
}

const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 500;

/**
 * @throws SinkUnreachableError when Redis could not be read, or not any more, before the deadline passed
 * @throws the signal's reason
 */
export async function waitForResult(wait: ResultWait, limits: Limits): Promise<WaitAnswer> {
  const { deadline, signal } = limits;
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    // Also finds the way to the server, however long it takes.
    const answer = await wait.read(limits);
    if (isAwaited(answer, wait)) return { outcome: "found", ...answer };
    const bell = new Bell();
    const watching = await wait.watch(bell, limits);
    if (watching.kind === "refused" && !watching.passing) throw watching.error;
    if (watching.kind === "watching") {
      try {
        const ended = await untilLost(wait, bell, limits, answer);
        if (ended !== undefined) return ended;
      } finally {
        watching.stop();
      }
      pauseMs = PAUSE_MS_MIN;
    }
    // Only a server that can be read and not watched for now, as while a slot of a cluster moves, is looked at again.
    await untilPassed(deadline.atMost(pauseMs), signal);
    if (deadline.passed && watching.kind !== "watching") return { outcome: "timeout", ...answer };
  }
}

/** The end of the wait; undefined when the watch was lost before. */
async function untilLost(
  wait: ResultWait,
  bell: Bell,
  limits: Limits,
  before: ReadAnswer,
): Promise<WaitAnswer | undefined> {
  let last = before;
  while (!bell.isLost) {
    try {
      last = await wait.read(limits);
    } catch (error) {
      // It changed at the last moment. Where the connection is lost, the truth is that nobody knows.
      const isLate = error instanceof SinkUnreachableError && limits.deadline.passed;
      if (isLate && !bell.isLost) return { outcome: "timeout", ...last };
      throw error;
    }
    if (isAwaited(last, wait)) return { outcome: "found", ...last };
    if (!(await bell.rings(limits))) return { outcome: "timeout", ...last };
  }
  return undefined;
}

function isAwaited(answer: ReadAnswer, { newerThan }: ResultWait): answer is CommittedResult {
  const committed = answer.fence?.committed;
  if (answer.value === undefined || committed === undefined || !answer.matches) return false;
  // the byte order of canonical texts is the order of the tokens
  return newerThan === undefined || committed.tokenText > newerThan.text;
}

/** @throws TokenError when the text is not canonical */
export function newerThanOf(text: string | undefined): FencingToken | undefined {
  return text === undefined ? undefined : parseToken(String(text));
}

/** Rings once for all that happened since it was last heard. */
class Bell implements Watcher {
  #isDue = false;
  #isLost = false;
  #ring: () => void = () => {};

  get isLost(): boolean {
    return this.#isLost;
  }

  changed(): void {
    this.#isDue = true;
    this.#ring();
  }

  lost(): void {
    this.#isLost = true;
    this.changed();
  }

  /** False when the deadline passed first. @throws the signal's reason */
  async rings({ deadline, signal }: Limits): Promise<boolean> {
    if (!this.#isDue) {
      const ringing = new Promise<void>((resolve) => {
        this.#ring = resolve;
      });
      if ((await settleWithin(ringing, deadline, signal)) === TIMED_OUT) return false;
    }
    this.#isDue = false;
    return true;
  }
}
