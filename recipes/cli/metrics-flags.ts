/**
 * The options by which a command serves its metrics while it runs.
 */
import type { Command } from "commander";
import { OptionError } from "../../lib/errors.js";
import { type MetricsServer, metricsServer } from "../metrics/metrics-server.js";
import type { Report } from "./report.js";

export interface MetricsFlags {
  metricsPort?: string;
  metricsHost: string;
}

export function addMetricsOptions(command: Command): Command {
  return command
    .option(
      "--metrics-port <port>",
      "serve metrics for Prometheus while it runs; 0 takes a free port",
    )
    .option("--metrics-host <address>", "the address to serve them at", "127.0.0.1");
}

/**
 * @throws OptionError when the port is not a number
 * @throws ConfigurationError when nothing can be served there
 */
export async function serveMetrics(
  { metricsPort, metricsHost }: MetricsFlags,
  report: Report,
): Promise<MetricsServer | undefined> {
  if (metricsPort === undefined) return undefined;
  const port = /^\d{1,5}$/.test(metricsPort) ? Number(metricsPort) : Number.NaN;
  if (!(port <= 65_535)) {
    throw new OptionError(
      `--metrics-port takes a number from 0 to 65535; it is ${JSON.stringify(metricsPort)}`,
    );
  }
  const server = await metricsServer({ port, host: metricsHost });
  report.note(`metrics at ${server.url}/metrics`, { event: "metrics", url: server.url });
  return server;
}
