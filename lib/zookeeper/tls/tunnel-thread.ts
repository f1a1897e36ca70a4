/**
 * Entry point of a tunnel's thread: for each server a port of 127.0.0.1, behind which TLS begins. It is a thread of its
 * own because the native client blocks the one it runs on while it closes, and waits for an answer that has to come
 * through here; and because a busy main thread must not cost the session.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import { isTlsFault, wordsOf } from "../../tls/tls-fault.js";
import { link } from "./link.js";
import type { TunnelNews, TunnelPlan } from "./messages.js";
import { canTell, isOwn } from "./own-connection.js";

const { servers, identity, handshakeMs } = workerData as TunnelPlan;
const { servername, ...keys } = identity;
const secureContext = createSecureContext(keys);
const guarded = await canTell();

function tell(news: TunnelNews): void {
  parentPort?.postMessage(news);
}

async function accept(plain: Socket, server: number): Promise<void> {
  const target = servers[server];
  if (target === undefined || (guarded && !(await isOwn(plain)))) {
    plain.destroy();
    return;
  }
  link(plain, {
    ...{ server: target, secureContext, servername, handshakeMs },
    up: () => tell({ is: "up", server }),
    down: (error) =>
      tell({ is: "down", server, message: wordsOf(error), untrusted: isTlsFault(error) }),
  });
}

const listeners = servers.map((_server, index) =>
  createServer({ pauseOnConnect: true, noDelay: true }, (plain) => void accept(plain, index)),
);
await Promise.all(
  listeners.map((listener) => {
    listener.listen(0, "127.0.0.1");
    return once(listener, "listening");
  }),
);
const ports = listeners.map((listener) => (listener.address() as AddressInfo).port); // they listen
tell({ is: "listening", ports, guarded });
