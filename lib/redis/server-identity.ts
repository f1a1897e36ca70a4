/**
 * Which server this is, and which history its data has: both change when it is restarted, and the second one also when
 * a replica takes over.
 */
import type { Node } from "./client/route.js";

/** undefined where the user may not ask. */
export async function serverIdentity(node: Node): Promise<string | undefined> {
  try {
    const [server, replication] = await Promise.all([
      node.info("server"),
      node.info("replication"),
    ]);
    const runId = /^run_id:(\w+)/m.exec(server)?.[1];
    const historyId = /^master_replid:(\w+)/m.exec(replication)?.[1];
    return runId === undefined ? undefined : `${runId} ${historyId}`;
  } catch (error) {
    if ((error as Error).name === "ReplyError") return undefined; // not allowed: the scripts notice a lost fence too
    throw error;
  }
}
