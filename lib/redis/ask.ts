/**
 * Asks Redis until the answer is known or the deadline ends. A lost reply is unknown, never "not written", and the
 * scripts give the same answer to the same token and value, so asking again is how to find out.
 */
import { untilPassed } from "../deadline.js";
import { SinkOutcomeUnknownError, SinkUnreachableError } from "../errors.js";
import type { Attempt, CommandRequest, Limits, ScriptRequest } from "./attempt.js";

const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 500;

/** A connection that can be asked; the real one is `RedisConnection`. */
export interface Asked<Request> {
  /** Where the server is, for messages. */
  readonly place: string;
  /** One attempt. */
  run(request: Request, limits: Limits): Promise<Attempt>;
}

export interface Question<Answer, Request = ScriptRequest | CommandRequest> {
  /** What to send; made anew for each attempt. */
  request: () => Request;
  /** Whether it may write, so that a lost reply leaves the outcome unknown. */
  writes: boolean;
  /** Turns a reply into the answer, or throws what it means. */
  answerOf: (reply: unknown, waited: unknown) => Answer | Again;
}

/** A reply after which something has to be done, and then the question is asked again. */
export class Again {
  constructor(readonly prepare: (limits: Limits) => Promise<void>) {}
}

/**
 * Repeats a question through lost replies, broken connections and a server that is loading.
 *
 * @throws SinkUnreachableError when the deadline passed and nothing can have been written
 * @throws SinkOutcomeUnknownError when an attempt at a write was sent and no reply told what became of it; also when
 *   the signal ended the wait or a later attempt was refused, which is then the cause
 * @throws the signal's reason, when it came before anything was sent
 */
export async function ask<Answer, Request = ScriptRequest | CommandRequest>(
  connection: Asked<Request>,
  question: Question<Answer, Request>,
  limits: Limits,
): Promise<Answer> {
  const { deadline, signal } = limits;
  signal?.throwIfAborted();
  let uncertain = false;
  const ended = (error: unknown) => (uncertain ? unknownOutcome(connection, error) : error);

  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const attempt = await connection.run(question.request(), limits);
    if (attempt.kind === "reply") {
      try {
        const answer = question.answerOf(attempt.reply, attempt.waited);
        if (!(answer instanceof Again)) return answer;
        await answer.prepare(limits);
        signal?.throwIfAborted();
      } catch (fault) {
        throw ended(fault);
      }
      if (!deadline.passed) continue;
      const cause = new Error("the deadline passed while the write was prepared again");
      throw ended(uncertain ? cause : unreachable(connection, cause));
    }
    if (attempt.kind === "refused" && !attempt.passing) throw ended(attempt.error);
    if (attempt.kind === "lost" && question.writes) uncertain = true;
    if (signal?.aborted) throw ended(signal.reason);
    const cause = attempt.kind === "refused" ? attempt.error : attempt.cause;
    if (!deadline.passed) await pause(pauseMs, limits);
    if (signal?.aborted) throw ended(signal.reason);
    if (deadline.passed) throw ended(uncertain ? cause : unreachable(connection, cause));
  }
}

function unreachable({ place }: { place: string }, cause: Error): SinkUnreachableError {
  return new SinkUnreachableError(
    `Redis at ${place} could not be reached in time: ${cause.message}`,
    { cause },
  );
}

function unknownOutcome({ place }: { place: string }, cause: unknown): SinkOutcomeUnknownError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SinkOutcomeUnknownError(
    `a write was sent to Redis at ${place} and its reply was lost; ` +
      `it may have happened, or may still happen: ${reason}`,
    { cause },
  );
}

/** Waits for a while, but not beyond the deadline or the signal. */
async function pause(ms: number, limits: Limits): Promise<void> {
  const wait = untilPassed(limits.deadline.atMost(ms), limits.signal);
  await wait.catch(() => {}); // the signal: the caller looks at it next
}
