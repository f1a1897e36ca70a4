/** Looks for the servers' programs on this machine. */
import { access, constants, readdir } from "node:fs/promises";
import { delimiter, join } from "node:path";

export interface ZooKeeperProgram {
  java: string;
  /** For `java -cp`. */
  classPath: string;
}

export interface FoundPrograms {
  java: string | undefined;
  zookeeperJars: string | undefined;
  redis: string | undefined;
}

/** Debian's redis-tools has the whole server under the name of its checker; Valkey is the same for our scripts. */
const REDIS_NAMES = ["redis-server", "redis-check-rdb", "valkey-server", "valkey-check-rdb"];

/** Where Homebrew puts them; its Java is not on the PATH. */
const BREW = ["/opt/homebrew/opt", "/usr/local/opt"];

/** Where Debian and Ubuntu put the jars of their packages. */
const DEBIAN_JARS = "/usr/share/java";

/**
 * The least that the server needs there. A pattern of all jars would also load every other logging library.
 * Dependencies that are not named here come by the class path inside zookeeper.jar.
 */
const DEBIAN_NAMES = [
  "zookeeper.jar",
  "zookeeper-jute.jar",
  "slf4j-api.jar",
  "slf4j-log4j12.jar",
  "log4j-1.2.jar",
  "servlet-api.jar",
  // A secure port needs Netty, of which that class path names only a part.
  "netty-codec.jar",
  "netty-resolver.jar",
  "netty-transport-native-unix-common.jar",
];

export async function findPrograms(env: NodeJS.ProcessEnv): Promise<FoundPrograms> {
  const javaHome = env.JAVA_HOME ? [join(env.JAVA_HOME, "bin")] : [];
  const path = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const brewed = BREW.map((folder) => join(folder, "openjdk/bin"));
  return {
    java: await findCommand("java", [...javaHome, ...brewed, ...path]),
    zookeeperJars: await findJars(env),
    redis: await findFirst(REDIS_NAMES, path),
  };
}

async function findJars(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const homes = BREW.map((folder) => join(folder, "zookeeper/libexec"));
  for (const home of env.ZOOKEEPER_HOME ? [env.ZOOKEEPER_HOME, ...homes] : homes) {
    const folder = join(home, "lib");
    const names = await readdir(folder).catch(() => []); // not there: another place may have them
    // Java itself reads a star as all jars of the folder.
    if (names.some((name) => /^zookeeper-\d.*\.jar$/.test(name))) return join(folder, "*");
  }
  const names = new Set(await readdir(DEBIAN_JARS).catch(() => [])); // not there: no jars
  if (!names.has("zookeeper.jar")) return undefined;
  const present = DEBIAN_NAMES.filter((name) => names.has(name));
  return present.map((name) => join(DEBIAN_JARS, name)).join(delimiter);
}

async function findCommand(name: string, folders: string[]): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false, // not in this folder
    );
    if (usable) return path;
  }
  return undefined;
}

async function findFirst(names: string[], folders: string[]): Promise<string | undefined> {
  for (const name of names) {
    const path = await findCommand(name, folders);
    if (path !== undefined) return path;
  }
  return undefined;
}
