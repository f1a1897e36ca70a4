/** The programs that servers are started from; what is missing is fetched where that is our business. */
import { ServersMissingError } from "../../lib/errors.js";
import { type Fetcher, fetchPackages } from "./fetch-programs.js";
import { type FoundPrograms, findPrograms, type ZooKeeperProgram } from "./find-programs.js";

export interface Programs {
  zookeeper(): ZooKeeperProgram;
  redis(): string;
}

type Part = keyof FoundPrograms;

const PARTS: Record<"zookeeper" | "redis", readonly Part[]> = {
  zookeeper: ["java", "zookeeperJars"],
  redis: ["redis"],
};

const NAMES: Record<Part, string> = {
  java: "java",
  zookeeperJars: "the jars of ZooKeeper",
  redis: "redis-server",
};

/** Redis comes as redis-tools: it has the whole program, and unlike redis-server it installs no system service. */
const PACKAGES: Record<Part, string> = {
  java: "default-jre-headless",
  zookeeperJars: "libzookeeper-java",
  redis: "redis-tools",
};

/**
 * On Debian and Ubuntu, as root, missing programs are installed, unless FENCEKEEPER_FETCH is `never`.
 *
 * @throws ServersMissingError with the command that installs them
 */
export async function providePrograms(
  kinds: readonly ("zookeeper" | "redis")[],
  options: {
    env: NodeJS.ProcessEnv;
    fetcher: Fetcher;
    find?: typeof findPrograms;
    say: (line: string) => void;
    signal?: AbortSignal | undefined;
  },
): Promise<Programs> {
  const { env, fetcher, find = findPrograms } = options;
  const parts = kinds.flatMap((kind) => PARTS[kind]);
  const missingOf = (found: FoundPrograms) => parts.filter((part) => found[part] === undefined);
  let found = await find(env);
  if (
    missingOf(found).length > 0 &&
    fetcher.debian &&
    fetcher.root &&
    env.FENCEKEEPER_FETCH !== "never"
  ) {
    const packages = missingOf(found).map((part) => PACKAGES[part]);
    await fetchPackages(packages, options);
    found = await find(env);
  }
  const missing = missingOf(found);
  if (missing.length > 0) throw new ServersMissingError(messageFor(missing, fetcher));
  const { java = "", zookeeperJars = "", redis = "" } = found;
  return { zookeeper: () => ({ java, classPath: zookeeperJars }), redis: () => redis };
}

function messageFor(missing: readonly Part[], fetcher: Fetcher): string {
  const names = missing.map((part) => NAMES[part]).join(", ");
  return (
    `no servers to use: ${names} not found on this machine. ${remedy(missing, fetcher)}, ` +
    "or start Docker, or give the addresses of your own servers"
  );
}

function remedy(missing: readonly Part[], { debian, root }: Fetcher): string {
  if (debian) {
    const sudo = root ? "" : "sudo ";
    const packages = missing.map((part) => PACKAGES[part]).join(" ");
    return `Install with: ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends ${packages}`;
  }
  if (process.platform === "darwin") return "Install with: brew install openjdk zookeeper redis";
  return "Install Java and Redis, unpack ZooKeeper from zookeeper.apache.org and set ZOOKEEPER_HOME to its folder";
}
