/**
 * A floor that is above every token there is: made of a transaction of ZooKeeper's that has just taken place. No two
 * floors are the same, and later ones are higher.
 */
import { NoNodeError } from "../../lib/errors.js";
import { generationFromCzxid, makeToken, SEQUENCE_MAX } from "../../lib/token.js";
import { claimsPath, nameOf, parentOf } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { nobodyClaimed } from "./live-jobs.js";

export interface FreshFloor {
  session: Session;
  root: string | undefined;
  era: number;
  /** Tells our znodes from those of others. */
  id: string;
}

/**
 * Canonical text of the floor. Repeated after a lost reply, it gives another one, which is as good.
 *
 * @throws ConfigurationError when nobody has ever claimed below the root
 * @throws GenerationError, and the errors of a ZooKeeper request
 */
export async function freshFloor({ session, root, era, id }: FreshFloor): Promise<string> {
  const parent = parentOf(claimsPath(root));
  const prefix = `${parent}/compact-${id}-`;
  try {
    const made = await session.create(prefix, "", "ephemeralSequential");
    const { stat } = await session.read(made);
    return makeToken({ era, generation: generationFromCzxid(stat.czxid), sequence: SEQUENCE_MAX })
      .text;
  } catch (error) {
    if (!(error instanceof NoNodeError)) throw error;
    throw nobodyClaimed(parent, error);
  } finally {
    await removeOurs(session, prefix);
  }
}

/** Also those of which we were not told that they were made. */
async function removeOurs(session: Session, prefix: string): Promise<void> {
  try {
    const parent = parentOf(prefix);
    const { children } = await session.list(parent);
    const ours = children.filter((name) => name.startsWith(nameOf(prefix)));
    await Promise.all(ours.map((name) => session.delete(`${parent}/${name}`)));
  } catch {
    // they go with the session at the latest, and stand in nobody's way
  }
}
