/**
 * What becomes of the znode of a claim that was lost while its session lives: it can never be committed, so it must not
 * keep the job from others, whatever its holder does.
 */
import type { LossReason } from "../../lib/errors.js";
import type { Contender } from "./contender.js";

export interface Loss {
  reason: LossReason;
  /** What the work may take to stop, in milliseconds. */
  graceMs: number;
  warn: (message: string) => void;
}

/**
 * Removes the znode when the work has had its time to stop. Where the server has said nothing for a whole session
 * timeout the session is given up as well: the client's reconnects would keep it, and the znode, alive at a server
 * whose answers are lost. Gives a function that calls the removal off, for who removes it himself.
 */
export function makeWay(contender: Contender, { reason, graceMs, warn }: Loss): () => void {
  if (reason !== "deadline" && reason !== "suspended") return () => {}; // znode or session are gone
  const { session } = contender;
  const { clock } = session;
  const cancelRemoval = clock.after(graceMs, () => {
    contender.remove().catch((error) => {
      warn(`the znode ${contender.path} could not be removed, it goes with the session: ${error}`);
    });
  });
  const silentMs = () => clock.nowMs() - session.lastConfirmedAtMs;
  const untilSilentMs = session.negotiatedTimeoutMs - silentMs();
  const cancelGivingUp = clock.after(Math.max(graceMs, untilSilentMs), () => {
    stop();
    if (silentMs() >= session.negotiatedTimeoutMs) session.giveUp();
  });
  const stop = session.onState((state) => {
    if (state === "LOST" || state === "CLOSED") end();
  });
  const end = () => {
    stop();
    cancelRemoval();
    cancelGivingUp();
  };
  return cancelRemoval;
}
