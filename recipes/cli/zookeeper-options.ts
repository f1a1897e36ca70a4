/**
 * The options that say how ZooKeeper is talked to: who we are, what others may do, and TLS. Secrets come from a file or
 * the environment, never from an argument, which every user of the machine can read in the list of processes.
 */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { OptionError } from "../../lib/errors.js";
import type { Access, DigestAuth } from "../../lib/zookeeper/access.js";
import type { ZooKeeperOptions } from "../../lib/zookeeper/zookeeper.js";
import { readText, readTls } from "./option-file.js";

/** As commander gives them. */
export interface ZooKeeperFlags {
  zookeeperAuthFile?: string;
  zookeeperAcl?: Access;
  zookeeperCa?: string;
  zookeeperCert?: string;
  zookeeperKey?: string;
}

/** Name of the variable that holds `user:password`. */
const AUTH_VARIABLE = "ZOOKEEPER_AUTH";

export function addZooKeeperOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--zookeeper-auth-file <file>",
        `file with user:password for ZooKeeper (or set ${AUTH_VARIABLE}=user:password)`,
      ).env("ZOOKEEPER_AUTH_FILE"),
    )
    .addOption(
      new Option("--zookeeper-acl <access>", "with a user: who may see who holds and who waits")
        .choices(["readable", "private"])
        .env("ZOOKEEPER_ACL"),
    )
    .addOption(
      new Option("--zookeeper-ca <file>", "use TLS: PEM file of the authority to trust").env(
        "ZOOKEEPER_CA",
      ),
    )
    .addOption(
      new Option("--zookeeper-cert <file>", "use TLS: PEM file of our certificate").env(
        "ZOOKEEPER_CERT",
      ),
    )
    .addOption(
      new Option("--zookeeper-key <file>", "PEM file of the key to our certificate").env(
        "ZOOKEEPER_KEY",
      ),
    );
}

const VARIABLES = {
  zookeeperAuthFile: "ZOOKEEPER_AUTH_FILE",
  zookeeperCa: "ZOOKEEPER_CA",
  zookeeperCert: "ZOOKEEPER_CERT",
  zookeeperKey: "ZOOKEEPER_KEY",
} as const;

/** The same for a command that we start, wherever it goes; what comes from our environment it has anyway. */
export function zookeeperEnvironment(flags: ZooKeeperFlags): NodeJS.ProcessEnv {
  const files = Object.entries(VARIABLES).flatMap(([name, variable]) => {
    const file = flags[name as keyof typeof VARIABLES];
    return file ? [[variable, resolve(file)]] : [];
  });
  return {
    ...Object.fromEntries(files),
    ...(flags.zookeeperAcl === undefined ? {} : { ZOOKEEPER_ACL: flags.zookeeperAcl }),
  };
}

/** @throws OptionError when a file cannot be read, or an option cannot be used */
export function securityOf(
  flags: ZooKeeperFlags,
  env: NodeJS.ProcessEnv = process.env,
): Pick<ZooKeeperOptions, "auth" | "acl" | "tls"> {
  const auth = authOf(flags, env);
  const { zookeeperCa: ca, zookeeperCert: cert, zookeeperKey: key } = flags;
  const tls = readTls("zookeeper", { ca, cert, key });
  return {
    ...(auth === undefined ? {} : { auth }),
    ...(flags.zookeeperAcl === undefined ? {} : { acl: flags.zookeeperAcl }),
    ...(tls === undefined ? {} : { tls }),
  };
}

function authOf(
  { zookeeperAuthFile }: ZooKeeperFlags,
  env: NodeJS.ProcessEnv,
): DigestAuth | undefined {
  const given = zookeeperAuthFile
    ? readText(zookeeperAuthFile, "--zookeeper-auth-file").trim()
    : env[AUTH_VARIABLE];
  if (given === undefined || given === "") {
    if (zookeeperAuthFile) throw new OptionError(`${zookeeperAuthFile} holds no user:password`);
    return undefined;
  }
  const colon = given.indexOf(":");
  const where = zookeeperAuthFile ? `the file ${zookeeperAuthFile}` : AUTH_VARIABLE;
  if (colon < 1 || colon === given.length - 1) {
    throw new OptionError(`${where} must have the form user:password`); // what it holds is not told
  }
  return { scheme: "digest", user: given.slice(0, colon), password: given.slice(colon + 1) };
}
