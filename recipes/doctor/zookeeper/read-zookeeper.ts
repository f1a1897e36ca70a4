/**
 * Asks a ZooKeeper ensemble for what the judgements want to know. It makes two sessions and changes no znode.
 */
import { Deadline } from "../../../lib/deadline.js";
import { ZooKeeperUnreachableError } from "../../../lib/errors.js";
import {
  type ConnectString,
  parseConnectString,
  type Server,
} from "../../../lib/zookeeper/connect-string.js";
import { claimsPath, DEFAULT_ROOT } from "../../../lib/zookeeper/paths.js";
import type { ZooKeeper, ZooKeeperOptions } from "../../../lib/zookeeper/zookeeper.js";
import { askOverTcp } from "../../servers/ask-over-tcp.js";
import { type Seen, Unseen } from "../finding.js";
import { seen } from "../seen.js";
import type { AccessLook } from "./access.js";
import type { ZooKeeperFacts } from "./judge-zookeeper.js";
import { readClaimPaths } from "./read-claim-paths.js";
import { type ServerFacts, serverOf } from "./servers.js";
import { Wire } from "./wire.js";

export interface ZooKeeperReading {
  zookeeper: ZooKeeper;
  options: ZooKeeperOptions;
  root: string | undefined;
  /** How many claim paths to look at, at most. */
  scanPaths: number;
}

/** Claim paths whose access control list is read besides that of the root and their parent. */
const ACCESS_PATHS = 20;

const SESSION_TIMEOUT_MS = 10_000;
const NO_NODE = -101;

/** @throws ZooKeeperUnreachableError, ConfigurationError, NativeClientError when there is no session to be had */
export async function readZooKeeper(reading: ZooKeeperReading): Promise<ZooKeeperFacts> {
  const { zookeeper, options, root, scanPaths } = reading;
  const target = parseConnectString(options.connect);
  const timeoutMs = zookeeper.connectTimeoutMs;
  const session = await zookeeper.session(Deadline.after(timeoutMs, zookeeper.clock));
  const [servers, claimPaths] = await Promise.all([
    readServers(target.servers, timeoutMs),
    seen(readClaimPaths(session, claimsPath(root), scanPaths)),
  ]);
  const some = claimPaths instanceof Unseen ? [] : claimPaths.looks.slice(0, ACCESS_PATHS);
  const paths = [root ?? DEFAULT_ROOT, claimsPath(root), ...some.map(({ path }) => path)];
  const raw = await seen(readRaw(target, paths, Deadline.after(timeoutMs, zookeeper.clock)));
  return {
    servers,
    askedTimeoutMs: options.sessionTimeoutMs ?? SESSION_TIMEOUT_MS,
    grantedTimeoutMs: session.negotiatedTimeoutMs,
    claimPaths,
    access: raw instanceof Unseen ? raw : raw.access,
    zxid: raw instanceof Unseen ? newestOf(servers) : raw.zxid,
  };
}

/** Each server for itself, whatever the others do. */
export async function readServers(
  servers: readonly Server[],
  timeoutMs: number,
): Promise<ServerFacts> {
  const ask = ({ host, port }: Server, request: string) =>
    askOverTcp({ host, port, request, timeoutMs });
  const looks = await Promise.all(
    servers.map(async (server) =>
      serverOf(`${server.host}:${server.port}`, await ask(server, "srvr")),
    ),
  );
  const leader = looks.findIndex((look) => look.answer === "serves" && look.mode === "leader");
  const place = servers[leader];
  if (place === undefined) return { servers: looks, syncedFollowers: undefined };
  const synced = /^zk_synced_followers\s+(\d+)/m.exec(await ask(place, "mntr"))?.[1];
  return {
    servers: looks,
    syncedFollowers: synced === undefined ? new Unseen("mntr is not answered") : Number(synced),
  };
}

interface Raw {
  zxid: bigint;
  access: AccessLook[];
}

/** From the first server that takes us in. */
async function readRaw(
  { servers, chroot }: ConnectString,
  paths: readonly string[],
  deadline: Deadline,
): Promise<Raw> {
  let last: unknown;
  for (const server of servers) {
    try {
      return await readFrom(server, { chroot, paths, deadline });
    } catch (error) {
      if (!(error instanceof ZooKeeperUnreachableError)) throw error;
      last = error;
    }
  }
  throw last;
}

async function readFrom(
  server: Server,
  { chroot, paths, deadline }: { chroot: string; paths: readonly string[]; deadline: Deadline },
): Promise<Raw> {
  const wire = await Wire.open(server, deadline);
  const raw: Raw = { zxid: 0n, access: [] };
  try {
    for (const path of paths) {
      const { zxid, code, entries } = await wire.acl(chroot + path);
      raw.zxid = zxid;
      if (code === NO_NODE) continue;
      const shown: AccessLook["entries"] =
        code === 0 ? entries : new Unseen(`the server answered ${code} to getAcl ${path}`);
      raw.access.push({ path, entries: shown });
    }
    return raw;
  } finally {
    await wire.close();
  }
}

/** Where the servers do not talk to us directly, but said it themselves. */
function newestOf({ servers }: ServerFacts): Seen<bigint> {
  const zxids = servers.flatMap((server) => (server.answer === "serves" ? server.zxid : []));
  const newest = zxids.sort((a, b) => (a < b ? 1 : -1))[0];
  return newest ?? new Unseen("no server told its current transaction");
}
