/**
 * Who holds which claim and who waits, read from ZooKeeper for people who look. Reads only.
 */
import { decodeJobId } from "../lib/job-id.js";
import { claimPath, claimsPath } from "../lib/zookeeper/paths.js";
import type { Session } from "../lib/zookeeper/session-port.js";
import { childrenOf, type QueueStatus, readQueueAt } from "./claim/queue-status.js";

export interface JobStatus extends QueueStatus {
  job: string;
}

/**
 * The status of one job, or of all jobs that have a claim path, sorted by job id.
 *
 * @throws the errors of a ZooKeeper request
 */
export async function readStatus(
  session: Session,
  { root, job }: { root?: string; job?: string | undefined } = {},
): Promise<JobStatus[]> {
  const jobs = job === undefined ? await jobsBelow(session, claimsPath(root)) : [job];
  const all = await Promise.all(jobs.map((each) => statusOf(session, each, claimPath(each, root))));
  return all.filter((status) => job !== undefined || status.contenders.length > 0);
}

async function jobsBelow(session: Session, path: string): Promise<string[]> {
  const names = await childrenOf(session, path);
  return names.flatMap((name) => decodeJobId(name) ?? []).sort();
}

async function statusOf(session: Session, job: string, path: string): Promise<JobStatus> {
  return { job, ...(await readQueueAt(session, path)) };
}
