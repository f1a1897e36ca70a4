/**
 * Asks ZooKeeper again and again, through lost connections and sessions, until it has answered or the time is over.
 */
import { Deadline, settleWithin, TIMED_OUT } from "../lib/deadline.js";
import { ConnectionLossError, SessionLostError, ZooKeeperUnreachableError } from "../lib/errors.js";
import type { Session, SessionSource } from "../lib/zookeeper/session-port.js";

export interface AskingZooKeeper {
  zookeeper: SessionSource;
  /** How long to wait for an answer, in milliseconds. */
  answerMs: number;
  signal: AbortSignal | undefined;
  /** What we are about, for the message. */
  what: string;
}

/**
 * @param step what is asked for; it must be harmless to repeat
 * @throws ZooKeeperUnreachableError when ZooKeeper does not answer in time
 * @throws the signal's reason when it aborts first, and what the step throws
 */
export async function askZooKeeper<Answer>(
  { zookeeper, answerMs, signal, what }: AskingZooKeeper,
  step: (session: Session) => Promise<Answer>,
): Promise<Answer> {
  const deadline = Deadline.after(answerMs, zookeeper.clock);
  for (;;) {
    const session = await zookeeper.session(deadline, signal);
    try {
      const answer = await settleWithin(step(session), deadline, signal);
      if (answer !== TIMED_OUT) return answer;
    } catch (error) {
      // the next session waits for the connection
      const passing = error instanceof ConnectionLossError || error instanceof SessionLostError;
      if (!passing) throw error;
    }
    if (deadline.passed) {
      throw new ZooKeeperUnreachableError(
        `ZooKeeper did not answer in time while we were ${what}: check that its servers run`,
      );
    }
  }
}
