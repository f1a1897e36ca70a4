/**
 * Makes a znode of the shared ZooKeeper read-only for everybody, which our own client has no call for.
 */
import { inject } from "vitest";
import ZooKeeperClient from "zookeeper";

const READ_ONLY = [{ perms: 1, scheme: "world", auth: "anyone" }];

export async function makeReadOnly(path: string): Promise<void> {
  const client = new ZooKeeperClient({ connect: inject("zookeeper"), debug_level: 0 } as object);
  await new Promise<void>((resolve, reject) => {
    client.connect({}, (error: unknown) => (error ? reject(error) : resolve()));
  });
  await client.set_acl(path, -1, READ_ONLY);
  client.close();
}
