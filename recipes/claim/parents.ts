/**
 * Makes the claim path and what is above it, when a create has shown that it is missing.
 */
import { NodeExistsError, NoNodeError, ZooKeeperUnsupportedError } from "../../lib/errors.js";
import { parentOf } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";

/**
 * Makes a claim path as a container, which the server removes once it is empty, and its parents as persistent znodes.
 * Begins at the bottom, so that no right to create is needed above the first znode that exists.
 */
export async function makeClaimPath(session: Session, path: string): Promise<void> {
  try {
    await make(session, path, "container");
  } catch (error) {
    if (!(error instanceof ZooKeeperUnsupportedError)) throw error;
    await make(session, path, "persistent"); // servers before 3.5 have no containers
  }
}

async function make(
  session: Session,
  path: string,
  mode: "container" | "persistent",
): Promise<void> {
  for (;;) {
    try {
      await session.create(path, "", mode);
      return;
    } catch (error) {
      if (error instanceof NodeExistsError) return;
      if (!(error instanceof NoNodeError) || parentOf(path) === "") throw error;
      await make(session, parentOf(path), "persistent");
    }
  }
}
