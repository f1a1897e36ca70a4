/**
 * Whose a connection to a loopback port is. Every user of a machine can connect to 127.0.0.1, and a tunnel would lend
 * them our certificate; Linux tells which socket is at the other end, and which sockets are this process's.
 */
import { once } from "node:events";
import { readdir, readFile, readlink } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Columns of /proc/net/tcp. */
const LOCAL = 1;
const REMOTE = 2;
const INODE = 9;

/** Whether this system tells: tried with a connection that is certainly ours. */
export async function canTell(): Promise<boolean> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const [[taken], client] = await Promise.all([
    once(server, "connection") as Promise<[Socket]>,
    connect(port, "127.0.0.1"),
  ]);
  const told = await isOwn(taken);
  client.destroy();
  taken.destroy();
  server.close();
  return told;
}

/** True when the other end of a connection that we took is a socket of this process. */
export async function isOwn({ remotePort = 0, localPort = 0 }: Socket): Promise<boolean> {
  const inode = await inodeOf(remotePort, localPort);
  if (inode === undefined) return false;
  const wanted = `socket:[${inode}]`;
  for (const file of await readdir("/proc/self/fd")) {
    const target = await readlink(`/proc/self/fd/${file}`).catch(() => ""); // closed meanwhile
    if (target === wanted) return true;
  }
  return false;
}

async function inodeOf(from: number, to: number): Promise<string | undefined> {
  const table = await readFile("/proc/self/net/tcp", "latin1").catch(() => ""); // not on this system
  const [fromHex, toHex] = [hexOf(from), hexOf(to)];
  for (const line of table.split("\n")) {
    const columns = line.trim().split(/\s+/);
    if (columns[LOCAL]?.endsWith(fromHex) && columns[REMOTE]?.endsWith(toHex)) {
      return columns[INODE];
    }
  }
  return undefined;
}

function hexOf(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}
