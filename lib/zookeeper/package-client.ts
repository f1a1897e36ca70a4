/**
 * What we use of the npm package `zookeeper`; the only file that imports it.
 */
import { NativeClientError } from "../errors.js";
import type { Acl } from "./access.js";
import type { HandleEvents } from "./handle.js";
import type { Stat } from "./session-port.js";

/** A znode's stat as the package gives it. */
export interface NativeStat {
  czxid: number;
  ephemeralOwner: string;
  ctime: Date;
  aversion: number;
  cversion: number;
}

/** An access control list as the package takes it. */
export type NativeAcl = { perms: number; scheme: string; auth: string }[];

export type Callback<T extends unknown[]> = (code: number, text: string, ...result: T) => void;

/** What we use of the package's class, which is typed more loosely. */
export interface PackageClient {
  readonly client_id: string;
  readonly client_password: string;
  readonly timeout: number;
  readonly state: number;
  init(config: object): unknown;
  close(): void;
  a_create(path: string, data: Buffer, flags: number, done: Callback<[string]>): number;
  a_exists(path: string, watch: boolean, done: Callback<[NativeStat]>): number;
  a_get(path: string, watch: boolean, done: Callback<[NativeStat, Buffer | null]>): number;
  a_get_children2(path: string, watch: boolean, done: Callback<[string[], NativeStat]>): number;
  a_delete_(path: string, version: number, done: Callback<[]>): number;
  a_sync(path: string, done: Callback<[string]>): number;
  a_set_acl(path: string, version: number, acl: NativeAcl, done: Callback<[]>): number;
  add_auth(scheme: string, secret: string, done: Callback<[]>): number;
  on(event: string, listener: (client: unknown, detail: unknown) => void): void;
}

/** Flags of a create (zookeeper.h). */
export const CREATE_FLAGS = { persistent: 0, ephemeralSequential: 3, container: 4 } as const;

/** Any version: a delete that does not compare. */
export const ANY_VERSION = -1;

/** The client's own log goes to standard output, where results belong: it is off. */
export const LOG_OFF = 0;

/** State of a client whose socket was closed inside a call, because what was sent could not be. */
export const SOCKET_CLOSED = 999;

/** State of a client that could not even begin. */
export const DEAD = 0;

/** The code of a close because the server did not accept our credentials (zookeeper.h, `ZOO_AUTH_FAILED_STATE`). */
const AUTH_FAILED = -113;

export type Package = new (config: object) => PackageClient;

/** @throws NativeClientError when the package's native part was not built */
export async function loadPackage(): Promise<Package> {
  try {
    const { default: loaded } = await import("zookeeper");
    return loaded as unknown as Package; // it is typed more loosely than we use it
  } catch (cause) {
    throw new NativeClientError(
      "the native ZooKeeper client is not built: install g++, make and python3, then run `npm rebuild zookeeper`",
      { cause },
    );
  }
}

/** Listens to a client; nothing is told of one that is in use no more. */
export function listen(
  client: PackageClient,
  {
    isInUse,
    connected,
    connecting,
    refused,
    closed,
    watch,
  }: HandleEvents & { isInUse: () => boolean },
): void {
  const on = (name: string, tell: (detail: unknown) => void) =>
    client.on(name, (_client, detail) => {
      if (isInUse()) tell(detail);
    });
  on("connect", () => connected({ sessionId: client.client_id, timeoutMs: client.timeout }));
  on("connecting", connecting);
  on("close", (code) => {
    if (code === AUTH_FAILED) refused();
    closed();
  });
  for (const name of ["created", "deleted", "changed", "child", "notwatching"]) {
    on(name, (path) => watch(String(path)));
  }
}

export function statOf({ czxid, ephemeralOwner, ctime, aversion, cversion }: NativeStat): Stat {
  return {
    czxid,
    ephemeralOwner,
    createdAtMs: ctime.getTime(),
    aclVersion: aversion,
    childVersion: cversion,
  };
}

export function nativeAcl(acl: Acl): NativeAcl {
  return acl.map(({ rights, scheme, id }) => ({ perms: rights, scheme, auth: id }));
}
