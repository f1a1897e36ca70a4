/**
 * Where things are in ZooKeeper: the root and the claim paths below it. Pure.
 */
import { encodeJobId } from "../job-id.js";
import { checkPath } from "./connect-string.js";

/** The root of everything that fencekeeper keeps in ZooKeeper, unless the user names another. */
export const DEFAULT_ROOT = "/fencekeeper";

/**
 * The znode whose children are the claim paths.
 *
 * @throws OptionError when the root is not an absolute path
 */
export function claimsPath(root: string = DEFAULT_ROOT): string {
  return `${checkPath(root, "the root")}/claims`;
}

/**
 * The znode whose children are the contenders for a job.
 *
 * @throws OptionError when the root is not an absolute path
 * @throws JobIdError when the job id cannot be used
 */
export function claimPath(job: string, root: string = DEFAULT_ROOT): string {
  return `${claimsPath(root)}/${encodeJobId(job)}`;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
