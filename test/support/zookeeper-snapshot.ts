/**
 * Writes data for a ZooKeeper server that is not running: a snapshot in which znodes exist whose child counters stand
 * where a test wants them, because a server reaches such numbers only after billions of creates.
 * Form: `FileSnap` and `DataTree.serialize` of the servers 3.8 and 3.9, big-endian, without the digests that these
 * may append and need not find.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parentOf } from "../../lib/zookeeper/paths.js";

export interface SnapshotNode {
  path: string;
  mode: "persistent" | "container";
  /** The number that the next sequential child gets. Default 0. */
  counter?: number;
}

/** Transaction that has made every znode of the snapshot, and the last one in it. */
export const SNAPSHOT_ZXID = 0x100;

const MAGIC = Buffer.from("ZKSN");
const VERSION = 2;
const DATABASE_ID = -1n;
/** In place of an access control list's number: everybody may do everything. */
const OPEN_ACL = -1n;
/** In place of the session that owns an ephemeral znode: a container. */
const CONTAINER_OWNER = -(2n ** 63n);
const CREATED_AT_MS = 1_700_000_000_000n;
/** Znodes that every server has, and looks for. The empty path is the top. */
const OWN_PATHS = ["", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];

/** @param folder for `seedFolder` of a server; parents that are not named are made as persistent znodes */
export async function writeSnapshot(folder: string, nodes: readonly SnapshotNode[]): Promise<void> {
  const place = join(folder, "version-2");
  await mkdir(place, { recursive: true });
  const body = Buffer.concat([
    ...[MAGIC, int(VERSION), long(DATABASE_ID)],
    int(0), // sessions
    int(0), // access control lists
    ...[...withParents(nodes)].flatMap(([path, node]) => [text(path), znode(node)]),
    text("/"), // no znode has this path: the end of the tree
  ]);
  const seal = Buffer.concat([long(BigInt(adler32(body))), text("/")]);
  const name = `snapshot.${SNAPSHOT_ZXID.toString(16)}`;
  await writeFile(join(place, name), Buffer.concat([body, seal]));
}

type Node = Omit<SnapshotNode, "path">;

/** By path, every parent before its children. */
function withParents(nodes: readonly SnapshotNode[]): Map<string, Node> {
  const tree = new Map<string, Node>(OWN_PATHS.map((path) => [path, { mode: "persistent" }]));
  const addParents = (path: string): void => {
    if (tree.has(path)) return;
    addParents(parentOf(path));
    tree.set(path, { mode: "persistent" });
  };
  for (const { path, ...node } of nodes) {
    addParents(parentOf(path));
    tree.set(path, node);
  }
  return tree;
}

function znode({ mode, counter = 0 }: Node): Buffer {
  const zxid = long(BigInt(SNAPSHOT_ZXID));
  const owner = mode === "container" ? CONTAINER_OWNER : 0n;
  return Buffer.concat([
    ...[int(0), long(OPEN_ACL)], // no data
    ...[zxid, zxid, long(CREATED_AT_MS), long(CREATED_AT_MS)], // made and last changed
    ...[int(0), int(counter), int(0)], // versions of its data, its children and its access control list
    ...[long(owner), zxid], // the last is of its children's last change
  ]);
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  return Buffer.concat([int(bytes.length), bytes]);
}

/** The checksum of RFC 1950. */
function adler32(bytes: Buffer): number {
  let low = 1;
  let high = 0;
  for (const byte of bytes) {
    low = (low + byte) % 65_521;
    high = (high + low) % 65_521;
  }
  return high * 65_536 + low;
}
