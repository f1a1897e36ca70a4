/**
 * How every connection to a Redis server is set up: nothing is ever queued or sent again behind our back. A request is
 * written now, under its caller's deadline, or never; reconnecting is up to the callers, so a server that is down or
 * refuses us is left alone in between.
 */
import type { RedisOptions } from "ioredis";
import type { TlsIdentity } from "../../tls/tls-options.js";
import type { RedisAddress } from "../redis-url.js";
import { SCRIPT_NAMES, scriptText } from "../script-files.js";
import { serverCode } from "../server-error.js";

export interface RouteOptions {
  address: RedisAddress;
  connectTimeoutMs: number;
  replyTimeoutMs: number;
  name: string;
  tls: TlsIdentity | undefined;
  /** Other addresses for those that sentinels or nodes of a cluster tell, by `host:port`. */
  natMap: Record<string, { host: string; port: number }> | undefined;
}

/** How long the server may take to say goodbye, and its socket to close. */
export const QUIT_TIMEOUT_MS = 500;
export const DISCONNECT_TIMEOUT_MS = 100;

export function clientOptions(options: RouteOptions) {
  const { address, connectTimeoutMs, replyTimeoutMs, name, tls } = options;
  const scripts = SCRIPT_NAMES.map((script) => [script, { lua: scriptText(script) }] as const);
  return {
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.tls && { tls: { ...tls, rejectUnauthorized: true } }),
    connectionName: name,
    connectTimeout: connectTimeoutMs,
    socketTimeout: replyTimeoutMs,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    lazyConnect: true,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // LOADING is answered to the scripts themselves, which needs no right to run INFO.
    enableReadyCheck: false,
    // A replica that was the primary: the next connect finds the new one by its name.
    reconnectOnError: (error: Error) => serverCode(error.message) === "READONLY",
    scripts: Object.fromEntries(scripts),
  } satisfies RedisOptions;
}
