/**
 * Makes a znode of the shared ZooKeeper read-only for everybody, which our own client has no call for. In a process of
 * its own, because the package works in one thread of a process only and here that is the thread of the sessions.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inject } from "vitest";

const PROGRAM = `
import ZooKeeperClient from "zookeeper";
const [connect, path] = process.argv.slice(1);
const client = new ZooKeeperClient({ connect, debug_level: 0 });
await new Promise((resolve, reject) => {
  client.connect({}, (error) => (error ? reject(error) : resolve()));
});
await client.set_acl(path, -1, [{ perms: 1, scheme: "world", auth: "anyone" }]);
client.close();
`;

export async function makeReadOnly(path: string): Promise<void> {
  await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", PROGRAM, inject("zookeeper"), path],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)) },
  );
}
