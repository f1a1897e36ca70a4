/**
 * Access control lists of the shared ZooKeeper, set and read. Reading is done in a process of its own: our client has
 * no call for it, and the package works in one thread of a process only, which here is that of the sessions.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inject } from "vitest";
import { RIGHTS } from "../../lib/zookeeper/access.js";
import { withSession } from "./raw-zookeeper.js";

/** An entry as the server keeps it. */
export interface StoredEntry {
  perms: number;
  scheme: string;
  auth: string;
}

const PROGRAM = `
import ZooKeeperClient from "zookeeper";
const [connect, secret, path] = process.argv.slice(1);
const client = new ZooKeeperClient({ connect, debug_level: 0 });
await new Promise((resolve, reject) => {
  client.connect({}, (error) => (error ? reject(error) : resolve()));
});
client.add_auth("digest", secret, () => {});
const [acl] = await client.get_acl(path);
console.log(JSON.stringify(acl));
client.close();
`;

/** Makes a znode read-only for everybody. */
export function makeReadOnly(path: string): Promise<void> {
  const acl = [{ rights: RIGHTS.read, scheme: "world", id: "anyone" }];
  return withSession((session) => session.setAcl(path, acl, -1));
}

/** The list of a znode that exists, as a user with the right to administer it sees it. */
export async function aclOf(path: string, secret: string): Promise<StoredEntry[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", PROGRAM, inject("zookeeper"), secret, path],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)) },
  );
  return JSON.parse(stdout);
}
