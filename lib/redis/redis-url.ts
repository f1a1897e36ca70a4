/**
 * Reads a Redis address. Only what is written here is understood: a query part could switch off what the sink relies
 * on. An address may hold a password, so no message shows any part of it.
 */
import { isIP } from "node:net";
import { OptionError } from "../errors.js";

export interface RedisAddress {
  host: string;
  port: number;
  username: string | undefined;
  password: string | undefined;
  database: number;
  tls: boolean;
}

const FORM = "redis://[user:password@]host[:port][/database], or rediss:// for TLS";

/**
 * Reads `redis://` and `rediss://` addresses.
 *
 * @throws OptionError when the text is not one; the message does not repeat it
 */
export function parseRedisUrl(text: string): RedisAddress {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw bad("it is not an address of that form");
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") throw bad("its scheme is another");
  if (url.hostname === "") throw bad("it names no host");
  if (url.search !== "" || url.hash !== "") throw bad("nothing may follow the database");
  if (url.username !== "" && url.password === "") throw bad("a user without a password");
  return {
    host: hostOf(url.hostname),
    port: url.port === "" ? 6379 : Number(url.port),
    username: decoded(url.username),
    password: decoded(url.password),
    database: databaseOf(url.pathname),
    tls: url.protocol === "rediss:",
  };
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
  return new OptionError(`the Redis URL must be ${FORM}; ${reason}`);
}
