/**
 * The connection string `host[:port][,host[:port]…][/chroot]`, parsed. Pure.
 */
import { OptionError } from "../errors.js";

const DEFAULT_PORT = 2181;

export interface Server {
  host: string;
  port: number;
}

export interface ConnectString {
  servers: Server[];
  /** "" or a path such as "/team". */
  chroot: string;
}

/**
 * @throws OptionError when the text is not a connection string
 */
export function parseConnectString(text: string): ConnectString {
  const slash = text.indexOf("/");
  const hosts = slash < 0 ? text : text.slice(0, slash);
  const chroot = slash < 0 ? "" : text.slice(slash);
  if (chroot === "/") return { servers: parseServers(hosts, text), chroot: "" };
  if (chroot !== "") checkPath(chroot, "the chroot of the ZooKeeper address");
  return { servers: parseServers(hosts, text), chroot };
}

/** The form that the C client reads: every server with its port, IPv6 addresses without brackets. */
export function formatConnectString({ servers, chroot }: ConnectString): string {
  return servers.map(({ host, port }) => `${host}:${port}`).join(",") + chroot;
}

/**
 * Checks an absolute znode path.
 *
 * @param what names the path in the message
 * @throws OptionError when ZooKeeper would refuse it
 */
export function checkPath(path: string, what: string): string {
  const parts = path.split("/");
  const valid =
    path.startsWith("/") &&
    parts.slice(1).every((part) => part !== "" && part !== "." && part !== "..") &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters ZooKeeper forbids
    !/[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/.test(path);
  if (!valid) {
    throw new OptionError(
      `${what} must be an absolute path without empty parts, "." or ".."; it is ${JSON.stringify(path)}`,
    );
  }
  return path;
}

function parseServers(hosts: string, whole: string): Server[] {
  return hosts.split(",").map((entry) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]@/]+))(?::(\d{1,5}))?$/.exec(entry.trim());
    const host = match?.[1] ?? match?.[2];
    const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
    if (host === undefined || port < 1 || port > 65_535) {
      throw new OptionError(
        `${JSON.stringify(whole)} is not a ZooKeeper address; the form is host:port,host:port/chroot`,
      );
    }
    return { host, port };
  });
}
