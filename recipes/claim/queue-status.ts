/**
 * Who stands in the queue at one claim path, read for people who look. Reads only.
 */
import { NoNodeError } from "../../lib/errors.js";
import { readQueue } from "../../lib/zookeeper/queue-order.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import type { ContenderName } from "../../lib/zookeeper/znode-name.js";

export interface ContenderStatus {
  /** The znode's name. */
  name: string;
  sequence: number;
  /** As the contender wrote it; undefined for other clients' znodes. */
  holder: string | undefined;
  host: string | undefined;
  pid: number | undefined;
  /** Milliseconds since 1970 by the server's clock. */
  sinceMs: number;
  /** Session that owns the znode, in hexadecimal; undefined for a persistent znode, which blocks the queue. */
  session: string | undefined;
}

export interface QueueStatus {
  /** The claim path. */
  path: string;
  /** The first one holds the claim, the others wait in this order. */
  contenders: ContenderStatus[];
  /** Children that are nobody's contender. */
  foreign: string[];
}

/** @throws the errors of a ZooKeeper request */
export async function readQueueAt(session: Session, path: string): Promise<QueueStatus> {
  const { contenders, foreign } = readQueue(await childrenOf(session, path));
  const read = await Promise.all(contenders.map((each) => contenderOf(session, path, each)));
  return { path, contenders: read.flatMap((each) => each ?? []), foreign };
}

async function contenderOf(
  session: Session,
  path: string,
  { name, sequence }: ContenderName,
): Promise<ContenderStatus | undefined> {
  try {
    const { data, stat } = await session.read(`${path}/${name}`);
    const record = parseRecord(data);
    return {
      name,
      sequence,
      holder: textOf(record.holder),
      host: textOf(record.host),
      pid: typeof record.pid === "number" ? record.pid : undefined,
      sinceMs: stat.createdAtMs,
      session: stat.ephemeralOwner === "0" ? undefined : stat.ephemeralOwner,
    };
  } catch (error) {
    if (error instanceof NoNodeError) return undefined; // it left while we were reading
    throw error;
  }
}

/** Names of the children; none where there is no such path. */
export async function childrenOf(session: Session, path: string): Promise<string[]> {
  try {
    return (await session.list(path)).children;
  } catch (error) {
    if (error instanceof NoNodeError) return []; // nobody has claimed there yet
    throw error;
  }
}

/** The JSON that a contender carries; other clients write other things, or nothing. */
function parseRecord(data: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {}; // not ours: there is nothing to show
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
