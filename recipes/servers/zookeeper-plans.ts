/** How ZooKeeper is run, as a program and as a container. */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { askOverTcp } from "./ask-over-tcp.js";
import type { ContainerPlan } from "./container-server.js";
import type { ZooKeeperProgram } from "./find-programs.js";
import type { ProgramPlan } from "./program-server.js";

export interface ZooKeeperServerOptions {
  /** Unit of all the server's times; sessions are granted from 2 of them. Default: 2000. */
  tickTimeMs?: number;
  /** Default: 20 ticks. */
  maxSessionTimeoutMs?: number;
  /** How often empty container nodes are looked for. Default: the server's, a minute. */
  containerCheckIntervalMs?: number;
  /** More lines of the configuration. */
  config?: Record<string, string>;
  /** A folder whose contents are its data at the first start. */
  seedFolder?: string;
}

export const ZOOKEEPER_IMAGE = "zookeeper:3.9";
const TICK_TIME_MS = 2000;

/** It lives for minutes: start fast and stay small. */
const JVM_FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"];
const MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

const LOG4J = `log4j.rootLogger=INFO, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
`;
const LOGBACK = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
`;

export function zookeeperProgram(
  found: ZooKeeperProgram,
  options: ZooKeeperServerOptions,
): ProgramPlan {
  return {
    name: "ZooKeeper",
    async prepare(folder) {
      await mkdir(join(folder, "data"));
      // Which logging library it has depends on its version.
      await writeFile(join(folder, "log4j.properties"), LOG4J);
      await writeFile(join(folder, "logback.xml"), LOGBACK);
      if (options.seedFolder) {
        await cp(options.seedFolder, join(folder, "data"), { recursive: true });
      }
    },
    async program({ folder, port }) {
      const file = join(folder, "zoo.cfg");
      const config = { ...commonConfig(options), ...placeConfig(folder, port), ...options.config };
      await writeFile(file, lines(config).join("\n"));
      const logging = [
        `-Dlog4j.configuration=file:${join(folder, "log4j.properties")}`,
        `-Dlogback.configurationFile=${join(folder, "logback.xml")}`,
      ];
      return {
        command: found.java,
        argv0: "java",
        args: [
          ...[...JVM_FLAGS, ...properties(options), ...logging],
          ...["-cp", found.classPath, MAIN_CLASS, file],
        ],
      };
    },
    async answers({ folder, port }) {
      const config = await askZooKeeper("127.0.0.1", port, "conf");
      return config.includes(`dataDir=${folder}`) && (await serves("127.0.0.1", port));
    },
  };
}

export function zookeeperContainer(image: string, options: ZooKeeperServerOptions): ContainerPlan {
  const { tickTime, ...rest } = commonConfig(options);
  return {
    name: "ZooKeeper",
    image,
    port: 2181,
    // The image's own names for what its entrypoint writes; everything else goes through the last one.
    environment: {
      ZOO_TICK_TIME: tickTime,
      ZOO_MAX_CLIENT_CNXNS: rest.maxClientCnxns,
      ZOO_4LW_COMMANDS_WHITELIST: rest["4lw.commands.whitelist"],
      ZOO_ADMINSERVER_ENABLED: rest["admin.enableServer"],
      ZOO_CFG_EXTRA: lines({ ...sessionConfig(options), ...options.config }).join(" "),
      JVMFLAGS: [...JVM_FLAGS, ...properties(options)].join(" "),
    },
    command: undefined,
    seed: options.seedFolder ? { from: options.seedFolder, to: "/data" } : undefined,
    answers: ({ host, port }) => serves(host, port),
  };
}

function commonConfig(options: ZooKeeperServerOptions) {
  return {
    ...sessionConfig(options),
    tickTime: String(options.tickTimeMs ?? TICK_TIME_MS),
    // Tests and benchmarks ask for numbers, and many clients come from this one address.
    "4lw.commands.whitelist": "*",
    maxClientCnxns: "0",
    // It would take a port that another server may need.
    "admin.enableServer": "false",
  };
}

function sessionConfig({ maxSessionTimeoutMs }: ZooKeeperServerOptions): Record<string, string> {
  if (maxSessionTimeoutMs === undefined) return {};
  return { maxSessionTimeout: String(maxSessionTimeoutMs) };
}

function placeConfig(folder: string, port: number): Record<string, string> {
  return {
    dataDir: join(folder, "data"),
    clientPort: String(port),
    clientPortAddress: "127.0.0.1",
  };
}

function properties({ containerCheckIntervalMs }: ZooKeeperServerOptions): string[] {
  if (containerCheckIntervalMs === undefined) return [];
  return [`-Dznode.container.checkIntervalMs=${containerCheckIntervalMs}`];
}

function lines(config: Record<string, string>): string[] {
  return Object.entries(config).map(([name, value]) => `${name}=${value}`);
}

function askZooKeeper(host: string, port: number, word: string): Promise<string> {
  return askOverTcp({ host, port, request: word, timeoutMs: 1000 });
}

/** It listens before it serves, and says then that it does not. */
async function serves(host: string, port: number): Promise<boolean> {
  return (await askZooKeeper(host, port, "srvr")).includes("Mode:");
}
