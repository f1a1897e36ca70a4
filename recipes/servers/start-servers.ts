/** Real servers from one place, for the demo, the tests and the benchmarks: the composition of this folder. */
import { chooseSources, type StartingSource, startFromFirst } from "./choose-source.js";
import { ContainerServer } from "./container-server.js";
import { openDocker } from "./docker.js";
import { systemFetcher } from "./fetch-programs.js";
import { givenRedis, givenZooKeeper } from "./given-server.js";
import { NamedRedis, NamedZooKeeper } from "./named-servers.js";
import { ProgramServer } from "./program-server.js";
import { providePrograms } from "./provide-programs.js";
import {
  REDIS_IMAGE,
  type RedisServerOptions,
  redisContainer,
  redisProgram,
} from "./redis-plans.js";
import type {
  RedisServer,
  Server,
  ServerSource,
  Servers,
  StartContext,
  ZooKeeperServer,
} from "./server.js";
import {
  ZOOKEEPER_IMAGE,
  type ZooKeeperServerOptions,
  zookeeperContainer,
  zookeeperProgram,
} from "./zookeeper-plans.js";

export interface StartOptions {
  /** Undefined: addresses that are given, else Docker, else programs of this machine. */
  source?: ServerSource | undefined;
  /** Servers of yours. They are never touched. */
  given?: { zookeeper?: string | undefined; redis?: string | undefined };
  zookeeper?: ZooKeeperServerOptions;
  redis?: RedisServerOptions;
  /** Names of images; these win over FENCEKEEPER_ZOOKEEPER_IMAGE and FENCEKEEPER_REDIS_IMAGE. */
  images?: { zookeeper?: string; redis?: string };
  /** Gets a line for people whenever something takes time or is not as expected. */
  say?: (line: string) => void;
  signal?: AbortSignal;
  /** Of one server, without fetching what is missing. Default: a minute. */
  startTimeoutMs?: number;
  /** Where FENCEKEEPER_SERVERS and its relatives are looked up. Default: the process's. */
  env?: NodeJS.ProcessEnv;
}

type Kind = "zookeeper" | "redis";

const START_TIMEOUT_MS = 60_000;

/**
 * Starts one ZooKeeper and one Redis, unless they are given, and ends them whatever happens to this process.
 *
 * @throws ServersMissingError with the command that installs what is missing
 * @throws ServerStartError with the end of the server's log
 */
export async function startServers(options: StartOptions = {}): Promise<Servers> {
  const { source, started } = await startKinds(["zookeeper", "redis"], options);
  const [zookeeper, redis] = started as [Server, Server];
  const stop = async () => {
    await Promise.all([zookeeper.stop(), redis.stop()]);
  };
  return {
    source,
    zookeeper: new NamedZooKeeper(zookeeper),
    redis: new NamedRedis(redis),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** One more ZooKeeper. */
export async function startZooKeeper(options: StartOptions = {}): Promise<ZooKeeperServer> {
  const { started } = await startKinds(["zookeeper"], options);
  return new NamedZooKeeper(started[0] as Server);
}

/** One more Redis. */
export async function startRedis(options: StartOptions = {}): Promise<RedisServer> {
  const { started } = await startKinds(["redis"], options);
  return new NamedRedis(started[0] as Server);
}

/** Servers in the order of their kinds. */
async function startKinds(
  kinds: readonly Kind[],
  options: StartOptions,
): Promise<{ source: ServerSource; started: Server[] }> {
  const { signal, say = () => {}, env = process.env } = options;
  const choice = chooseSources(options.source, env);
  const address = (kind: Kind) => (choice.useGiven ? options.given?.[kind] : undefined);
  const given = new Map<Kind, Server>();
  for (const kind of kinds) {
    const text = address(kind);
    if (text) given.set(kind, kind === "zookeeper" ? givenZooKeeper(text) : givenRedis(text));
  }
  const wanted = kinds.filter((kind) => !given.has(kind));
  if (wanted.length === 0) {
    return { source: "given", started: kinds.map((kind) => given.get(kind) as Server) };
  }
  const context = { say, signal, startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS };
  const start = (source: StartingSource) =>
    source === "docker"
      ? startContainers(wanted, { options, context, env })
      : startPrograms(wanted, { options, context, env });
  const { source, started } = await startFromFirst(choice.sources, { start, say, signal });
  const next = started.values();
  return { source, started: kinds.map((kind) => given.get(kind) ?? (next.next().value as Server)) };
}

interface Start {
  options: StartOptions;
  context: StartContext;
  env: NodeJS.ProcessEnv;
}

async function startContainers(kinds: readonly Kind[], start: Start): Promise<Server[]> {
  const { options, context, env } = start;
  const docker = await openDocker(context.signal, env);
  context.say(`starting ${namesOf(kinds)} with Docker`);
  const { zookeeper, redis } = options.images ?? {};
  const plans = {
    zookeeper: () =>
      zookeeperContainer(
        zookeeper ?? (env.FENCEKEEPER_ZOOKEEPER_IMAGE || ZOOKEEPER_IMAGE),
        options.zookeeper ?? {},
      ),
    redis: () =>
      redisContainer(redis ?? (env.FENCEKEEPER_REDIS_IMAGE || REDIS_IMAGE), options.redis ?? {}),
  };
  return allOrNone(kinds.map((kind) => ContainerServer.start(plans[kind](), docker, context)));
}

async function startPrograms(kinds: readonly Kind[], start: Start): Promise<Server[]> {
  const { options, context, env } = start;
  const programs = await providePrograms(kinds, {
    env,
    fetcher: await systemFetcher(),
    say: context.say,
    signal: context.signal,
  });
  context.say(`starting ${namesOf(kinds)} from the programs of this machine`);
  const plans = {
    zookeeper: () => zookeeperProgram(programs.zookeeper(), options.zookeeper ?? {}),
    redis: () => redisProgram(programs.redis(), options.redis ?? {}),
  };
  return allOrNone(kinds.map((kind) => ProgramServer.start(plans[kind](), context)));
}

/** When one of them cannot be started, the others are stopped again. */
async function allOrNone(starting: Promise<Server>[]): Promise<Server[]> {
  const ends = await Promise.allSettled(starting);
  const started = ends.filter((end) => end.status === "fulfilled").map((end) => end.value);
  const failure = ends.find((end) => end.status === "rejected");
  if (!failure) return started;
  await Promise.all(started.map((server) => server.stop()));
  throw failure.reason;
}

function namesOf(kinds: readonly Kind[]): string {
  return kinds.map((kind) => ({ zookeeper: "ZooKeeper", redis: "Redis" })[kind]).join(" and ");
}
