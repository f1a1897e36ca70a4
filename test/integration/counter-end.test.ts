/**
 * Goal: near the end of ZooKeeper's 32-bit counter no number is granted twice, and people need not do anything.
 * Method: a server of our own that starts on a snapshot in which the counters stand there.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { contenderPrefix, parseContenderName } from "../../lib/zookeeper/znode-name.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { withSession } from "../support/raw-zookeeper.js";
import { type SnapshotNode, writeSnapshot } from "../support/zookeeper-snapshot.js";

const END = 2_147_483_647;
const WAIT = { timeout: 30_000, interval: 20 };

const RAW_PATH = "/raw";
const NODES: SnapshotNode[] = [{ path: RAW_PATH, mode: "persistent", counter: END - 2 }];

let folder: string;
let server: ZooKeeperServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fencekeeper-test-"));
  await writeSnapshot(folder, NODES);
  server = await startZooKeeper({
    // The server must not make a path afresh in our place.
    zookeeper: { seedFolder: folder, containerCheckIntervalMs: 3_600_000 },
  });
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("what the server does at the end of its counter", () => {
  it("goes up to 2147483647 and then appends that number again and again", async () => {
    await withSession(async (session) => {
      const appended: (number | undefined)[] = [];
      for (let i = 0; i < 5; i++) appended.push(await createdNumber(session));
      expect(appended).toEqual([END - 2, END - 1, END, END, END]);
    }, server.connect);
  });

  it("appends negative numbers when creates come at once, and 2147483647 to the next single one", async () => {
    await withSession(async (session) => {
      await vi.waitFor(async () => {
        const atOnce = Array.from({ length: 8 }, () => createdNumber(session));
        const appended = await Promise.all(atOnce);
        expect(appended).toContain(END);
        expect(Math.min(...appended)).toBeLessThan(0);
      }, WAIT);
      expect(await createdNumber(session)).toBe(END);
    }, server.connect);
  });
});

async function createdNumber(session: Session): Promise<number> {
  const prefix = `${RAW_PATH}/${contenderPrefix(randomUUID())}`;
  const created = await session.create(prefix, "", "ephemeralSequential");
  const name = parseContenderName(created.slice(RAW_PATH.length + 1));
  if (name === undefined) throw new Error(`${created} is no contender's name`);
  return name.sequence;
}
