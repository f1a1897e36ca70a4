/**
 * Asks a Redis server for what the judgements want to know. Reads only.
 */
import { type Seen, Unseen } from "../finding.js";
import { seen } from "../seen.js";
import { type ClusterFacts, clusterOf } from "./cluster.js";
import { type RightsQuestion, readRights } from "./read-rights.js";
import { type Info, parseInfo, type RedisFacts, SETTINGS, type Setting } from "./redis-facts.js";
import { type RedisReader, textOf, textsOf } from "./redis-reader.js";

export async function readRedis(
  reader: RedisReader,
  question: RightsQuestion,
): Promise<RedisFacts> {
  const info = await seen(reader.read("INFO").then((reply) => parseInfo(textOf(reply))));
  const [settings, clockAheadMs, cluster, rights] = await Promise.all([
    readSettings(reader),
    seen(readClock(reader)),
    readCluster(reader, info),
    readRights(reader, question),
  ]);
  return { info, settings, clockAheadMs, cluster, rights };
}

async function readSettings(reader: RedisReader): Promise<Record<Setting, Seen<string>>> {
  const entries = await Promise.all(
    SETTINGS.map(async (name) => [name, await readSetting(reader, name)] as const),
  );
  return Object.fromEntries(entries) as Record<Setting, Seen<string>>;
}

async function readSetting(reader: RedisReader, name: Setting): Promise<Seen<string>> {
  const reply = await seen(reader.read("CONFIG", "GET", name));
  if (reply instanceof Unseen) return new Unseen("CONFIG GET is not allowed here");
  return textsOf(reply)[1] ?? new Unseen(`this server has no ${name}`);
}

async function readClock(reader: RedisReader): Promise<number> {
  const beforeMs = Date.now();
  const [seconds, microseconds] = textsOf(await reader.read("TIME")).map(Number);
  const hereMs = (beforeMs + Date.now()) / 2;
  return (seconds ?? 0) * 1_000 + (microseconds ?? 0) / 1_000 - hereMs;
}

async function readCluster(
  reader: RedisReader,
  info: Seen<Info>,
): Promise<Seen<ClusterFacts> | undefined> {
  if (info instanceof Unseen || info.get("cluster_enabled") !== "1") return undefined;
  return seen(
    Promise.all([reader.read("CLUSTER", "INFO"), reader.read("CLUSTER", "NODES")]).then(
      ([state, nodes]) => clusterOf(textOf(state), textOf(nodes)),
    ),
  );
}
