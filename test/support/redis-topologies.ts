/**
 * Redis as people really run it: a primary that sentinels watch, and a cluster of six nodes. Always programs of this
 * machine: what nodes tell of one another are addresses, which containers would have to change.
 */
import { Redis } from "ioredis";
import { vi } from "vitest";
import type { RedisServer } from "../../recipes/servers/server.js";
import { startRedis } from "../../recipes/servers/start-servers.js";
import { freePort } from "./redis-for-test.js";

export interface Topology {
  url: string;
  /** Servers that take writes now. */
  primaries(): Promise<Redis[]>;
  /** Kills a primary for good; resolves when it is dead. */
  killPrimary(): Promise<void>;
  stop(): Promise<void>;
}

const WAIT = { timeout: 60_000, interval: 50 };

const asProgram = (args: string[], config?: string[]): Promise<RedisServer> =>
  startRedis({ source: "programs", redis: { args, ...(config && { config }) } });

const SYNC_AT_ONCE = ["--repl-diskless-sync-delay", "0"];

function isReplicating(info: string): boolean {
  return /^slave0:.*state=online/m.test(info);
}

/** A primary with a replica, and three sentinels. */
export async function startSentinels(): Promise<Topology> {
  const [primary, replica] = (await Promise.all([1, 2].map(() => asProgram(SYNC_AT_ONCE)))) as [
    RedisServer,
    RedisServer,
  ];
  const clients = [primary, replica].map(({ url }) => quietly(url)) as [Redis, Redis];
  await clients[1].replicaof("127.0.0.1", primary.port);
  await vi.waitFor(async () => {
    if (!isReplicating(await clients[0].info("replication"))) throw new Error("not in sync yet");
  }, WAIT);
  const config = [
    `sentinel monitor main 127.0.0.1 ${primary.port} 2`,
    "sentinel down-after-milliseconds main 1000",
    "sentinel failover-timeout main 5000",
  ];
  const sentinels = await Promise.all([1, 2, 3].map(() => asProgram(["--sentinel"], config)));
  const admins = sentinels.map(({ url }) => quietly(url));
  await vi.waitFor(async () => {
    for (const admin of admins) {
      const [main] = (await admin.call("SENTINEL", "MASTERS")) as unknown as unknown[][];
      const field = (name: string) => Number(main?.[main.indexOf(name) + 1]);
      if (field("num-other-sentinels") !== 2 || field("num-slaves") !== 1) {
        throw new Error("the sentinels do not know one another yet");
      }
    }
  }, WAIT);
  return {
    url: `redis-sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}#main`,
    primaries: async () => writable(clients),
    killPrimary: () => primary.kill(),
    async stop() {
      for (const client of [...clients, ...admins]) client.disconnect();
      await Promise.all([primary, replica, ...sentinels].map((server) => server.stop()));
    },
  };
}

/** Three primaries with a replica each. */
export async function startCluster(): Promise<Topology> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const busPort = await freePort();
      const server = await asProgram([
        ...["--cluster-enabled", "yes", "--cluster-node-timeout", "1500"],
        ...["--cluster-port", String(busPort), ...SYNC_AT_ONCE],
      ]);
      return { server, busPort, client: quietly(server.url) };
    }),
  );
  const [first] = nodes as [(typeof nodes)[0]];
  for (const { server, busPort } of nodes) {
    await first.client.call("CLUSTER", "MEET", "127.0.0.1", server.port, busPort);
  }
  const ids = await Promise.all(nodes.map(({ client }) => client.cluster("MYID")));
  await Promise.all(
    [0, 1, 2].map((index) => {
      const slots = Array.from({ length: 16_384 }, (_, slot) => slot).filter(
        (slot) => Math.floor((slot * 3) / 16_384) === index,
      );
      return nodes[index]?.client.cluster("ADDSLOTS", ...(slots as [number]));
    }),
  );
  for (const index of [3, 4, 5]) {
    await vi.waitFor(() => nodes[index]?.client.cluster("REPLICATE", String(ids[index - 3])), WAIT);
  }
  await vi.waitFor(async () => {
    for (const [index, { client }] of nodes.entries()) {
      const state = await client.cluster("INFO");
      const known = String(await client.cluster("NODES")).split("\n").length - 1;
      const isSynced = index > 2 || isReplicating(await client.info("replication"));
      if (!state.includes("cluster_state:ok") || known !== 6 || !isSynced) {
        throw new Error("the cluster is not ready yet");
      }
    }
  }, WAIT);
  return {
    url: `redis-cluster://${nodes.map(({ server }) => `127.0.0.1:${server.port}`).join(",")}`,
    primaries: async () => writable(nodes.map(({ client }) => client)),
    killPrimary: () => first.server.kill(),
    async stop() {
      for (const { client } of nodes) client.disconnect();
      await Promise.all(nodes.map(({ server }) => server.stop()));
    },
  };
}

/** A client whose server may die under it. */
function quietly(url: string): Redis {
  return new Redis(url, { maxRetriesPerRequest: 0 }).on("error", () => {}); // it is killed on purpose
}

async function writable(clients: Redis[]): Promise<Redis[]> {
  const roles = await Promise.all(
    clients.map(async (client) => {
      const role = await client.call("ROLE").catch(() => []); // it is dead
      return { client, role: (role as unknown[])[0] };
    }),
  );
  return roles.filter(({ role }) => role === "master").map(({ client }) => client);
}
