/**
 * Waits for a session to reach a state, bounded by a deadline and a signal.
 */
import { type Deadline, settleWithin, type TIMED_OUT } from "../deadline.js";
import type { Session, SessionState } from "./session-port.js";

/**
 * @returns the first state that is wanted, or TIMED_OUT
 * @throws the signal's reason when it aborts first
 */
export async function untilState(
  session: Session,
  wanted: (state: SessionState) => boolean,
  deadline: Deadline,
  signal?: AbortSignal,
): Promise<SessionState | typeof TIMED_OUT> {
  if (wanted(session.state)) return session.state;
  let stop = () => {};
  const reached = new Promise<SessionState>((resolve) => {
    stop = session.onState((state) => {
      if (wanted(state)) resolve(state);
    });
  });
  try {
    return await settleWithin(reached, deadline, signal);
  } finally {
    stop();
  }
}
