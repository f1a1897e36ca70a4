/**
 * Asks ZooKeeper whether the claim with a token is held now: for processes that were given the token by the one that
 * holds the claim, and have no claim of their own.
 */
import { ClaimLostError, NoNodeError } from "../../lib/errors.js";
import { type FencingToken, generationFromCzxid } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { readQueue } from "../../lib/zookeeper/queue-order.js";
import type { Session, SessionSource } from "../../lib/zookeeper/session-port.js";
import { askZooKeeper } from "../ask-zookeeper.js";

export interface ConfirmTokenOptions {
  zookeeper: SessionSource;
  job: string;
  token: FencingToken;
  root: string | undefined;
  /** How long to wait for ZooKeeper, in milliseconds. */
  answerMs: number;
  signal: AbortSignal | undefined;
}

/**
 * @throws ClaimLostError when it is not held
 * @throws ZooKeeperUnreachableError, and the other errors of a ZooKeeper request
 */
export async function confirmToken(options: ConfirmTokenOptions): Promise<void> {
  const { zookeeper, job, token, root, answerMs, signal } = options;
  const path = claimPath(job, root);
  const what = `looking whether token ${token.sequence} holds ${path}`;
  const isHeld = await askZooKeeper({ zookeeper, answerMs, signal, what }, (session) =>
    isFirst(session, path, token),
  );
  if (isHeld) return;
  throw new ClaimLostError(
    `the claim of job ${JSON.stringify(job)} with token ${token.sequence} is not held any more`,
    "deleted",
  );
}

async function isFirst(session: Session, path: string, token: FencingToken): Promise<boolean> {
  try {
    await session.sync(path);
    const { children, stat } = await session.list(path);
    const [first] = readQueue(children).contenders;
    const isSamePath = generationFromCzxid(stat.czxid) === token.generation;
    return isSamePath && first?.sequence === token.sequence;
  } catch (error) {
    if (error instanceof NoNodeError) return false; // nobody is in the queue
    throw error;
  }
}
