/**
 * Looks the hosts of a connection string up before the native client sees them: its own look-up blocks the thread, and
 * one name that does not resolve makes it refuse them all.
 */
import { lookup } from "node:dns/promises";
import { type Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import { ZooKeeperUnreachableError } from "../errors.js";
import type { ConnectString } from "./connect-string.js";

/**
 * The connection string with only those servers whose host name resolves.
 *
 * @throws ZooKeeperUnreachableError when none of them does before the deadline
 */
export async function resolveServers(
  { servers, chroot }: ConnectString,
  deadline: Deadline,
): Promise<ConnectString> {
  const known = await Promise.all(
    servers.map(async ({ host }) => {
      try {
        return (await settleWithin(lookup(host), deadline)) !== TIMED_OUT;
      } catch {
        return false; // the name does not resolve; the message below names it
      }
    }),
  );
  const resolved = servers.filter((_server, index) => known[index]);
  if (resolved.length === 0) {
    const hosts = servers.map(({ host }) => host).join(", ");
    throw new ZooKeeperUnreachableError(
      `the host name of no ZooKeeper server can be resolved (${hosts}): check the address`,
    );
  }
  return { servers: resolved, chroot };
}
