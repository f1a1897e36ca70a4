/**
 * Goes through the claim paths, up to a bound. Reads only.
 */
import { NoNodeError } from "../../../lib/errors.js";
import { decodeJobId } from "../../../lib/job-id.js";
import { readQueue } from "../../../lib/zookeeper/queue-order.js";
import type { Session } from "../../../lib/zookeeper/session-port.js";
import { isNearEnd } from "../../claim/counter-end.js";
import { childrenOf } from "../../claim/queue-status.js";
import type { ClaimPathFacts, ClaimPathLook } from "./claim-paths.js";

/** Contenders of one path that are looked at one by one, from the head of the queue. */
const CONTENDERS_MAX = 100;

/** Paths that are read at the same time. */
const STEP_PATHS = 50;

/** @throws the errors of a ZooKeeper request */
export async function readClaimPaths(
  session: Session,
  parent: string,
  pathsMax: number,
): Promise<ClaimPathFacts> {
  const names = (await childrenOf(session, parent)).sort();
  const jobs = names.filter((name) => decodeJobId(name) !== undefined);
  const strange = names.filter((name) => decodeJobId(name) === undefined);
  const chosen = jobs.slice(0, pathsMax);
  const looks: ClaimPathLook[] = [];
  for (let at = 0; at < chosen.length; at += STEP_PATHS) {
    const step = chosen.slice(at, at + STEP_PATHS);
    looks.push(...(await Promise.all(step.map((name) => lookAt(session, `${parent}/${name}`)))));
  }
  return { parent, looks, strange, left: jobs.length - chosen.length };
}

async function lookAt(session: Session, path: string): Promise<ClaimPathLook> {
  const { contenders, foreign } = readQueue(await childrenOf(session, path));
  const first = contenders.slice(0, CONTENDERS_MAX);
  const persistent = await Promise.all(
    first.map(async ({ name }) => ((await isPersistent(session, `${path}/${name}`)) ? name : [])),
  );
  return {
    path,
    contenders: contenders.length,
    persistent: persistent.flat(),
    foreign,
    nearEnd: contenders.map(({ sequence }) => sequence).filter(isNearEnd),
  };
}

async function isPersistent(session: Session, path: string): Promise<boolean> {
  try {
    return (await session.read(path)).stat.ephemeralOwner === "0";
  } catch (error) {
    if (error instanceof NoNodeError) return false; // it left while we were reading
    throw error;
  }
}
