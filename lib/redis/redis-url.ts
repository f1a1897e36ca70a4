/**
 * Reads a Redis address. Only what is written here is understood: a query part could switch off what the sink relies
 * on. An address may hold a password, so no message shows any part of it.
 */
import { isIP } from "node:net";
import { OptionError } from "../errors.js";

export interface RedisAddress {
  /** One server, its sentinels, or some nodes of a cluster. */
  hosts: { host: string; port: number }[];
  isCluster: boolean;
  /** What sentinels call the primary; undefined where there are none. */
  primaryName: string | undefined;
  username: string | undefined;
  password: string | undefined;
  /** Of the sentinels, where it is another than the server's; given as an option. */
  sentinelPassword?: string;
  database: number;
  tls: boolean;
}

const FORM = "redis://[user:password@]host[:port][/database], or rediss:// for TLS";
const SENTINEL_FORM = "redis-sentinel://[user:password@]host[:port],…[/database]#NAME";
const CLUSTER_FORM = "redis-cluster://[user:password@]host[:port],…";

/** scheme, kind, user and password, hosts, path, name */
const SEVERAL =
  /^(rediss?)-(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:#([^#]+))?$/;

const PORTS = { server: 6379, sentinel: 26_379, cluster: 6379 };

/**
 * Reads `redis://`, `redis-sentinel://` and `redis-cluster://` addresses, with `rediss` for TLS.
 *
 * @param given the password, where it is not in the address
 * @throws OptionError when the text is not one; the message does not repeat it
 */
export function parseRedisUrl(text: string, given?: string): RedisAddress {
  const isSeveral = typeof text === "string" && /^rediss?-/.test(text);
  const address = isSeveral ? parseSeveral(text) : parseOne(text);
  if (given !== undefined && address.password !== undefined) {
    throw new OptionError(
      "the password of Redis is given twice: in the address, and apart from it",
    );
  }
  const password = address.password ?? (given === "" ? undefined : given);
  if (address.username !== undefined && password === undefined)
    throw bad("a user without a password");
  return { ...address, password };
}

function parseOne(text: string): RedisAddress {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw bad("it is not an address of that form");
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") throw bad("its scheme is another");
  if (url.hostname === "") throw bad("it names no host");
  if (url.search !== "" || url.hash !== "") throw bad("nothing may follow the database");
  return {
    hosts: [{ host: hostOf(url.hostname), port: portOf(url.port, PORTS.server) }],
    ...{ isCluster: false, primaryName: undefined },
    username: decoded(url.username),
    password: decoded(url.password),
    database: databaseOf(url.pathname),
    tls: url.protocol === "rediss:",
  };
}

function parseSeveral(text: string): RedisAddress {
  const match = SEVERAL.exec(text);
  if (match === null) throw bad("it is not an address of that form");
  const [, scheme, kind, credentials = "", hosts = "", path = "", name] = match;
  const isCluster = kind === "cluster";
  if (isCluster && (path.length > 1 || name !== undefined)) {
    throw bad("nothing may follow the nodes of a cluster, which has no databases");
  }
  if (!isCluster && name === undefined) throw bad("the name of the primary is missing: #NAME");
  const [username = "", password = ""] = splitOnce(credentials);
  return {
    hosts: hosts.split(",").map((each) => hostAndPort(each, isCluster)),
    isCluster,
    primaryName: decoded(name ?? ""),
    username: decoded(username),
    password: decoded(password),
    database: databaseOf(path),
    tls: scheme === "rediss",
  };
}

function splitOnce(credentials: string): string[] {
  const colon = credentials.indexOf(":");
  return colon < 0 ? [credentials] : [credentials.slice(0, colon), credentials.slice(colon + 1)];
}

function hostAndPort(text: string, isCluster: boolean): { host: string; port: number } {
  const url = URL.canParse(`redis://${text}`) ? new URL(`redis://${text}`) : undefined;
  if (!url?.hostname || url.username !== "") throw bad("one of its hosts is not host[:port]");
  const port = portOf(url.port, isCluster ? PORTS.cluster : PORTS.sentinel);
  return { host: hostOf(url.hostname), port };
}

function portOf(text: string, otherwise: number): number {
  return text === "" ? otherwise : Number(text);
}

function hostOf(hostname: string): string {
  const inner = hostname.replace(/^\[(.*)\]$/, "$1");
  return isIP(inner) === 6 ? inner : hostname;
}

function databaseOf(pathname: string): number {
  if (pathname === "" || pathname === "/") return 0;
  const match = /^\/(\d{1,9})$/.exec(pathname);
  if (match === null) throw bad("the database is not a number");
  return Number(match[1]);
}

function decoded(part: string): string | undefined {
  if (part === "") return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    throw bad("user or password hold a % that is not followed by two hexadecimal digits");
  }
}

function bad(reason: string): OptionError {
  return new OptionError(
    `the Redis URL must be ${FORM}; or ${SENTINEL_FORM}; or ${CLUSTER_FORM}; ${reason}`,
  );
}
