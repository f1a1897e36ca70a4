/**
 * Makes the claim path and what is above it.
 */
import { NodeExistsError, NoNodeError, ZooKeeperUnsupportedError } from "../../lib/errors.js";
import type { Acl } from "../../lib/zookeeper/access.js";
import { parentOf } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { readyProtected } from "./protected-parents.js";

export interface Parents {
  session: Session;
  /** The claim path. */
  path: string;
  /** What the znodes that we make are given; undefined: nothing. */
  protection: Acl | undefined;
  warn: (message: string) => void;
}

/**
 * Makes a claim path as a container, which the server removes once it is empty, and its parents as persistent znodes.
 * Without protection it begins at the bottom, so that no right to create is needed above the first znode that exists.
 */
export async function makeClaimPath({ session, path, protection, warn }: Parents): Promise<void> {
  if (protection === undefined) {
    await makeWithParents(session, path);
    return;
  }
  await readyProtected({
    ...{ session, path, acl: protection, warn },
    make: (each, data) =>
      each === path ? makeContainer(session, path, data) : makePersistent(session, each, data),
  });
}

async function makeWithParents(session: Session, path: string): Promise<void> {
  const make = (each: string) =>
    each === path ? makeContainer(session, path, "") : makePersistent(session, each, "");
  const makeOne = async (each: string): Promise<void> => {
    for (;;) {
      try {
        await make(each);
        return;
      } catch (error) {
        if (error instanceof NodeExistsError) return;
        if (!(error instanceof NoNodeError) || parentOf(each) === "") throw error;
        await makeOne(parentOf(each));
      }
    }
  };
  await makeOne(path);
}

async function makeContainer(session: Session, path: string, data: string): Promise<void> {
  try {
    await session.create(path, data, "container");
  } catch (error) {
    if (!(error instanceof ZooKeeperUnsupportedError)) throw error;
    await makePersistent(session, path, data); // servers before 3.5 have no containers
  }
}

async function makePersistent(session: Session, path: string, data: string): Promise<void> {
  await session.create(path, data, "persistent");
}
