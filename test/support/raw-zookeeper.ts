/**
 * Does to ZooKeeper what strangers do: deletes claim paths, makes nodes.
 */
import { inject } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { NoNodeError } from "../../lib/errors.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";

/** Lends a session of its own to the function, and closes it. The server is the shared one, unless another is named. */
export async function withSession<T>(
  use: (session: Session) => Promise<T>,
  connect = inject("zookeeper"),
): Promise<T> {
  const zookeeper = new ZooKeeper({ connect });
  try {
    return await use(await zookeeper.session(Deadline.after(10_000, systemClock)));
  } finally {
    await zookeeper.close();
  }
}

/** The server may have been faster: it removes an empty claim path by itself. */
export function deleteClaimPath(job: string): Promise<void> {
  return withSession(async (session) => {
    try {
      await session.delete(claimPath(job));
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
    }
  });
}

/** Names of a path's children; none when there is no such path, as after the server has removed an empty one. */
export async function childrenOf(session: Session, path: string): Promise<string[]> {
  try {
    return (await session.list(path)).children;
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}

/** Names of the contenders of a job; none when there is no claim path. */
export function contendersOf(job: string): Promise<string[]> {
  return withSession((session) => childrenOf(session, claimPath(job)));
}
