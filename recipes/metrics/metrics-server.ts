/**
 * Serves the metrics over HTTP for Prometheus, and a page for health checks.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { ConfigurationError, OptionError } from "../../lib/errors.js";
import type { MeasureOptions } from "./measure.js";
import { CONTENT_TYPE, PrometheusMetrics } from "./prometheus.js";

export interface MetricsServerOptions extends MeasureOptions {
  /** 0 takes one that is free. */
  port: number;
  /** Address to listen at. Default: `127.0.0.1`, which only this machine reaches. */
  host?: string;
}

export interface MetricsServer extends AsyncDisposable {
  readonly port: number;
  /** `http://host:port`; below it are `/metrics` and `/healthz`. */
  readonly url: string;
  /** Stops serving and counting; safe to call again. */
  close(): Promise<void>;
}

const PORT_MAX = 65_535;

/**
 * Counts from now on, and serves what was counted.
 *
 * @throws OptionError when an option cannot be used
 * @throws ConfigurationError when the port is taken, or may not be listened at
 */
export async function metricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { port, host = "127.0.0.1" } = options;
  if (!Number.isInteger(port) || port < 0 || port > PORT_MAX) {
    throw new OptionError(`port must be a whole number from 0 to ${PORT_MAX}; it is ${port}`);
  }
  if (host === "") throw new OptionError("host must be an address or a name; it is empty");
  const metrics = new PrometheusMetrics(options);
  const server = createServer((request, response) => serve(metrics, request, response));
  try {
    server.listen({ port, host });
    await once(server, "listening");
  } catch (cause) {
    metrics.stop();
    throw cannotListen(cause as NodeJS.ErrnoException, { port, host });
  }
  server.on("error", () => {}); // a connection that could not be accepted is the scraper's to notice, not the work's
  const address = server.address() as AddressInfo; // a TCP server's, once it listens
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= new Promise((resolve) => {
      metrics.stop();
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return closing;
  };
  return {
    port: address.port,
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${address.port}`,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function serve(
  metrics: PrometheusMetrics,
  { method, url = "" }: IncomingMessage,
  response: ServerResponse,
): void {
  const plain = "text/plain; charset=utf-8";
  const reply = (status: number, type: string, text: string) => {
    const body = Buffer.from(text);
    response.writeHead(status, { "content-type": type, "content-length": body.length }).end(body);
  };
  const [path] = url.split("?");
  if (method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    reply(405, plain, "only GET and HEAD\n");
  } else if (path === "/metrics") reply(200, CONTENT_TYPE, metrics.text());
  else if (path === "/healthz") reply(200, plain, "ok\n");
  else reply(404, plain, "here are /metrics and /healthz\n");
}

const REASONS: Record<string, string> = {
  EADDRINUSE: "another process listens there; choose another port, or 0 for one that is free",
  EACCES: "that is not allowed to this user; choose a port above 1023",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "no address is known for that name",
};

function cannotListen(
  cause: NodeJS.ErrnoException,
  { port, host }: { port: number; host: string },
): ConfigurationError {
  const reason = REASONS[cause.code ?? ""] ?? cause.message;
  const message = `the metrics cannot be served at ${host}, port ${port}: ${reason}`;
  return new ConfigurationError(message, { cause });
}
