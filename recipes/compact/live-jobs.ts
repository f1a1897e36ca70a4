/**
 * Which of some jobs have contenders now, so that their fences are left alone.
 */
import { ConfigurationError, NoNodeError } from "../../lib/errors.js";
import { decodeJobId } from "../../lib/job-id.js";
import { storedJob } from "../../lib/redis/stored-form.js";
import { claimsPath } from "../../lib/zookeeper/paths.js";
import { readQueue } from "../../lib/zookeeper/queue-order.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { childrenOf } from "../claim/queue-status.js";

/** Claim paths that are read at the same time. */
const STEP_PATHS = 100;

/**
 * @param wanted jobs as they are stored in fences
 * @throws ConfigurationError when nobody has ever claimed below the root
 * @throws the errors of a ZooKeeper request
 */
export async function liveJobs(
  session: Session,
  root: string | undefined,
  wanted: ReadonlySet<string>,
): Promise<Set<string>> {
  const claims = claimsPath(root);
  try {
    await session.sync(claims);
  } catch (error) {
    if (!(error instanceof NoNodeError)) throw error;
  }
  const paths = (await claimPathsBelow(session, claims)).flatMap((name) => {
    const id = decodeJobId(name);
    const job = id === undefined ? "" : storedJob(id);
    return wanted.has(job) ? { job, path: `${claims}/${name}` } : [];
  });
  const live = new Set<string>();
  for (let at = 0; at < paths.length; at += STEP_PATHS) {
    const step = paths.slice(at, at + STEP_PATHS);
    await Promise.all(
      step.map(async ({ job, path }) => {
        const { contenders } = readQueue(await childrenOf(session, path));
        if (contenders.length > 0) live.add(job);
      }),
    );
  }
  return live;
}

async function claimPathsBelow(session: Session, claims: string): Promise<string[]> {
  try {
    return (await session.list(claims)).children;
  } catch (error) {
    if (error instanceof NoNodeError) throw nobodyClaimed(claims, error);
    throw error;
  }
}

/** Then every fence would look like that of a finished job. */
export function nobodyClaimed(path: string, cause: NoNodeError): ConfigurationError {
  return new ConfigurationError(
    `nobody has ever claimed a job in this ZooKeeper: there is no ${path}, so nothing tells which jobs are finished. ` +
      "Check --zookeeper and --root; nothing was changed",
    { cause },
  );
}
