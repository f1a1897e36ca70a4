/**
 * One connection through a tunnel: the native client's on this machine, joined with one to the server under TLS.
 * Data flow with back-pressure both ways, and the end of one side is the end of the other, after what was on its way.
 */
import { isIP, type Socket } from "node:net";
import { connect, type SecureContext, type TLSSocket } from "node:tls";
import type { Server } from "../connect-string.js";

/** What was on its way when one side ended may take so long, in milliseconds. */
const LINGER_MS = 3_000;

export interface LinkOptions {
  server: Server;
  secureContext: SecureContext;
  servername: string | undefined;
  handshakeMs: number;
  /** The server has answered. */
  up: () => void;
  /** The connection failed before the server answered. */
  down: (error: Error) => void;
}

/** Joins a connection that we took with the server. It must be paused. */
export function link(plain: Socket, options: LinkOptions): void {
  const { server, secureContext, handshakeMs, up, down } = options;
  const servername = options.servername ?? (isIP(server.host) === 0 ? server.host : undefined);
  const secure = connect({
    ...{ host: server.host, port: server.port, secureContext },
    ...(servername === undefined ? {} : { servername }),
    // never from NODE_TLS_REJECT_UNAUTHORIZED
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
  });
  let answered = false;
  let failure: Error | undefined;
  const timer = setTimeout(
    () => secure.destroy(new Error(`no TLS connection was made within ${handshakeMs} ms`)),
    handshakeMs,
  );
  secure.setNoDelay(true);
  secure.on("error", (error) => {
    failure ??= error;
  });
  secure.once("secureConnect", () => {
    clearTimeout(timer);
    plain.pipe(secure);
    secure.pipe(plain);
    secure.once("data", () => {
      answered = true;
      up();
    });
  });
  secure.once("close", () => {
    clearTimeout(timer);
    if (!answered && !plain.destroyed) {
      down(failure ?? new Error("the server closed the connection before it answered"));
    }
    endSoon(plain);
  });
  plain.on("error", () => {}); // "close" follows, and the client knows best why
  plain.once("close", () => endSoon(secure));
}

function endSoon(socket: Socket | TLSSocket): void {
  if (socket.destroyed) return;
  socket.resume();
  socket.destroySoon();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
