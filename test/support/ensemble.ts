/**
 * Three ZooKeeper servers that form a quorum, from the place where all servers come from: as containers on a network of
 * their own, or as programs of this machine. They are gone when the test ends, however it ends.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import { askOverTcp } from "../../recipes/servers/ask-over-tcp.js";
import {
  chooseSources,
  type StartingSource,
  startFromFirst,
} from "../../recipes/servers/choose-source.js";
import { type ContainerPlan, ContainerServer } from "../../recipes/servers/container-server.js";
import { openDocker } from "../../recipes/servers/docker.js";
import { systemFetcher } from "../../recipes/servers/fetch-programs.js";
import type { ZooKeeperProgram } from "../../recipes/servers/find-programs.js";
import { freePort } from "../../recipes/servers/free-port.js";
import { NamedZooKeeper } from "../../recipes/servers/named-servers.js";
import { type ProgramPlan, ProgramServer } from "../../recipes/servers/program-server.js";
import { providePrograms } from "../../recipes/servers/provide-programs.js";
import type { Server, StartContext, ZooKeeperServer } from "../../recipes/servers/server.js";
import {
  ZOOKEEPER_IMAGE,
  type ZooKeeperServerOptions,
  zookeeperContainer,
  zookeeperProgram,
} from "../../recipes/servers/zookeeper-plans.js";
import { SteadyAddress } from "./steady-address.js";

const IDS = [1, 2, 3];
const WAIT = { timeout: 60_000, interval: 50 };

/** Ticks: to join and copy the data, and to be behind before a server is dropped. */
const LIMITS = { initLimit: "20", syncLimit: "6" };

/** A short tick, so that elections and the ends of sessions are near. */
const OPTIONS: ZooKeeperServerOptions = { tickTimeMs: 500, containerCheckIntervalMs: 86_400_000 };

/** One of the three. Its address stays the same through restarts. */
export class Member {
  #fault: "paused" | "dead" | undefined;

  constructor(
    readonly server: ZooKeeperServer,
    readonly address: SteadyAddress,
  ) {}

  get connect(): string {
    return this.address.connect;
  }

  get port(): number {
    return Number(this.connect.split(":")[1]);
  }

  async pause(): Promise<void> {
    await this.server.pause();
    this.#fault = "paused";
  }

  async kill(): Promise<void> {
    await this.server.kill();
    this.#fault = "dead";
  }

  /** Continues it or starts it again, whatever was done to it; settles when it serves. */
  async restore(): Promise<void> {
    if (this.#fault === "paused") await this.server.resume();
    if (this.#fault === "dead") await this.address.restart();
    this.#fault = undefined;
    await vi.waitFor(async () => {
      if ((await this.mode()) === undefined) throw new Error(`${this.connect} does not serve`);
    }, WAIT);
  }

  /** `leader` or `follower`; undefined while it is no part of a quorum, or does not answer. */
  async mode(): Promise<string | undefined> {
    const { host, port } = this.server;
    const answer = await askOverTcp({ host, port, request: "srvr", timeoutMs: 500 });
    return /^Mode: (\w+)$/m.exec(answer)?.[1];
  }
}

export class Ensemble implements AsyncDisposable {
  private constructor(
    readonly members: readonly Member[],
    private readonly end: () => Promise<void>,
  ) {}

  static async start(): Promise<Ensemble> {
    const say = (line: string) => console.error(`ensemble: ${line}`);
    const context = { say, startTimeoutMs: WAIT.timeout };
    const start = (source: StartingSource) =>
      source === "docker" ? startContainers(context) : startPrograms(context);
    const { sources } = chooseSources(undefined, process.env);
    const { started } = await startFromFirst(sources, { start, say });
    const members = await Promise.all(
      started.servers.map(async (server) => {
        const named = new NamedZooKeeper(server);
        return new Member(named, await SteadyAddress.of(named));
      }),
    );
    return new Ensemble(members, async () => {
      await Promise.all(members.map(({ address }) => address.close()));
      await started.stop();
    });
  }

  /** All three. */
  get connect(): string {
    return this.members.map(({ connect }) => connect).join(",");
  }

  /** The leader, as soon as there is one; after a fault, one that is not the old one. */
  leader({ not }: { not?: Member } = {}): Promise<Member> {
    return vi.waitFor(async () => {
      const modes = await Promise.all(this.members.map((member) => member.mode()));
      const leader = this.members.find((member, at) => modes[at] === "leader" && member !== not);
      if (leader === undefined) throw new Error(`no leader among ${modes}`);
      return leader;
    }, WAIT);
  }

  async followers(): Promise<[Member, Member]> {
    const leader = await this.leader();
    const [one, other] = this.members.filter((member) => member !== leader);
    if (one === undefined || other === undefined) throw new Error("not three servers");
    return [one, other];
  }

  /** Undoes every fault; settles when all three serve. At the same time, because one alone has no quorum. */
  async restore(): Promise<void> {
    await Promise.all(this.members.map((member) => member.restore()));
  }

  stop(): Promise<void> {
    return this.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }
}

interface Started {
  servers: Server[];
  stop(): Promise<void>;
}

/** At the same time, because one alone has no quorum and does not come up; all of them or none. */
async function startAll(starting: Promise<Server>[]): Promise<Started> {
  const ends = await Promise.allSettled(starting);
  const servers = ends.filter((end) => end.status === "fulfilled").map((end) => end.value);
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  const failure = ends.find((end) => end.status === "rejected");
  if (!failure) return { servers, stop };
  await stop();
  throw failure.reason;
}

async function startPrograms(context: StartContext): Promise<Started> {
  const fetcher = await systemFetcher();
  const programs = await providePrograms(["zookeeper"], { env: process.env, fetcher, ...context });
  const ports = await Promise.all(IDS.map(async () => `${await freePort()}:${await freePort()}`));
  const places = IDS.map((id, at) => [`server.${id}`, `127.0.0.1:${ports[at]}`]);
  const config = { ...LIMITS, ...Object.fromEntries(places) };
  const plan = (id: number) => memberProgram(programs.zookeeper(), { id, config });
  return startAll(IDS.map((id) => ProgramServer.start(plan(id), context)));
}

function memberProgram(
  found: ZooKeeperProgram,
  { id, config }: { id: number; config: Record<string, string> },
): ProgramPlan {
  const plan = zookeeperProgram(found, { ...OPTIONS, config });
  return {
    ...plan,
    async prepare(folder) {
      await plan.prepare(folder);
      await writeFile(join(folder, "data", "myid"), String(id));
    },
  };
}

async function startContainers(context: StartContext): Promise<Started> {
  const docker = await openDocker(undefined, process.env);
  const name = `fencekeeper-${randomUUID()}`;
  const { network } = docker.client;
  // the label by which testcontainers' own clean-up process would find it
  const made = await network.create({ Name: name, Labels: { "org.testcontainers": "true" } });
  const plan = (id: number) => memberContainer({ id, network: name });
  try {
    const all = await startAll(
      IDS.map((id) => ContainerServer.start(plan(id), docker, { ...context })),
    );
    const stop = async () => {
      await all.stop();
      await network.remove(made);
    };
    return { ...all, stop };
  } catch (error) {
    await network.remove(made);
    throw error;
  }
}

function memberContainer({ id, network }: { id: number; network: string }): ContainerPlan {
  const image = process.env.FENCEKEEPER_ZOOKEEPER_IMAGE || ZOOKEEPER_IMAGE;
  const plan = zookeeperContainer(image, OPTIONS);
  const places = IDS.map((each) => `server.${each}=zookeeper${each}:2888:3888;2181`);
  return {
    ...plan,
    environment: {
      ...plan.environment,
      ZOO_MY_ID: String(id),
      ZOO_SERVERS: places.join(" "),
      ZOO_INIT_LIMIT: LIMITS.initLimit,
      ZOO_SYNC_LIMIT: LIMITS.syncLimit,
      ZOO_STANDALONE_ENABLED: "false",
    },
    network: { name: network, alias: `zookeeper${id}` },
  };
}
