/**
 * A TCP proxy that breaks connections at chosen points.
 *
 *   client ── request ──> proxy ──> server
 *          <── reply ───        <──
 */
import { createConnection, createServer, type Socket } from "node:net";

export interface CutProxy {
  port: number;
  /** The next reply is thrown away, and with it the connection: the server has run the request. */
  cutNextReply(): void;
  /** The next request is thrown away, and with it the connection: the server never sees it. */
  cutNextRequest(): void;
  /** Requests are kept back, connections stay open. */
  holdRequests(): void;
  /** Requests that are kept back go on, in their order, and so do later ones. */
  releaseRequests(): void;
  /** How many requests are kept back. */
  heldCount(): number;
  /** Connections so far. */
  connectionCount(): number;
  stop(): Promise<void>;
}

export async function startCutProxy(options: {
  targetPort: number;
  port?: number;
}): Promise<CutProxy> {
  const open = new Set<Socket>();
  let next: "reply" | "request" | undefined;
  let held: (() => void)[] | undefined;
  let connections = 0;

  const server = createServer((client) => {
    connections++;
    const upstream = createConnection({ port: options.targetPort, host: "127.0.0.1" });
    const cut = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", cut);
      socket.on("close", () => {
        open.delete(socket);
        cut();
      });
    }
    const isCut = (direction: "reply" | "request") => {
      if (next !== direction) return false;
      next = undefined;
      cut();
      return true;
    };
    client.on("data", (bytes) => {
      if (isCut("request")) return;
      if (held) held.push(() => upstream.write(bytes));
      else upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (!isCut("reply")) client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    cutNextReply: () => {
      next = "reply";
    },
    cutNextRequest: () => {
      next = "request";
    },
    holdRequests: () => {
      held = [];
    },
    releaseRequests: () => {
      const waiting = held ?? [];
      held = undefined;
      for (const forward of waiting) forward();
    },
    heldCount: () => held?.length ?? 0,
    connectionCount: () => connections,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
