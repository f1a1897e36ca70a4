/**
 * Does to the shared ZooKeeper what strangers do: deletes claim paths, makes nodes.
 */
import { inject } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { NoNodeError } from "../../lib/errors.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";

/** Lends a session of its own to the function, and closes it. */
export async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const zookeeper = new ZooKeeper({ connect: inject("zookeeper") });
  try {
    return await use(await zookeeper.session(Deadline.after(10_000, systemClock)));
  } finally {
    await zookeeper.close();
  }
}

export function deleteClaimPath(job: string): Promise<void> {
  return withSession((session) => session.delete(claimPath(job)));
}

/** Names of the contenders of a job; none when there is no claim path. */
export function contendersOf(job: string): Promise<string[]> {
  return withSession(async (session) => {
    try {
      return (await session.list(claimPath(job))).children;
    } catch (error) {
      if (error instanceof NoNodeError) return [];
      throw error;
    }
  });
}
