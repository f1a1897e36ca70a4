/**
 * Goal: the metrics can be fetched while the server is open, and an address that cannot be used is told as such.
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ConfigurationError, OptionError } from "../../lib/errors.js";
import { sinkChannel } from "../../lib/telemetry/channels.js";
import { type MetricsServer, metricsServer } from "../../recipes/metrics/metrics-server.js";
import { readExposition } from "../support/exposition.js";

const opened: MetricsServer[] = [];

async function open(host?: string): Promise<MetricsServer> {
  const server = await metricsServer({ port: 0, ...(host === undefined ? {} : { host }) });
  opened.push(server);
  return server;
}

afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
  expect(sinkChannel.hasSubscribers).toBe(false);
});

describe("the metrics server", () => {
  it("serves what was counted since it was opened, with Prometheus' content type", async () => {
    const { url } = await open();
    sinkChannel.publish({ operation: "read", outcome: "absent", keyPrefix: "k", durationMs: 1 });
    const response = await fetch(`${url}/metrics?from=anywhere`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const { samples } = readExposition(await response.text());
    expect(samples.get('fencekeeper_sink_calls_total{operation="read",outcome="absent"}')).toBe(1);
  });

  it("answers health checks, and nothing else", async () => {
    const { url } = await open();
    const health = await fetch(`${url}/healthz`);
    expect([health.status, await health.text()]).toEqual([200, "ok\n"]);
    expect((await fetch(url)).status).toBe(404);
    expect((await fetch(`${url}/metrics`, { method: "POST" })).status).toBe(405);
    const head = await fetch(`${url}/metrics`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("listens on loopback only unless told otherwise, and names an IPv6 address as URLs want it", async () => {
    expect((await open()).url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const { url } = await open("localhost");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("is gone once it is closed, also with a connection kept open, and may be closed again", async () => {
    const server = await open();
    await fetch(`${server.url}/healthz`);
    await Promise.all([server.close(), server.close()]);
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
  });

  it.each([-1, 65_536, 1.5, Number.NaN])("refuses the port %s", async (port) => {
    await expect(metricsServer({ port })).rejects.toThrow(OptionError);
  });

  it("refuses an empty host, which would be every address", async () => {
    await expect(metricsServer({ port: 0, host: "" })).rejects.toThrow(OptionError);
  });

  it("says that a port is taken, and counts nothing then", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const refused = metricsServer({ port });
    await expect(refused).rejects.toThrow(ConfigurationError);
    await expect(refused).rejects.toThrow(`port ${port}: another process listens there`);
    taken.close();
  });

  it("says that this machine does not have the address", async () => {
    const refused = metricsServer({ port: 0, host: "192.0.2.1" });
    await expect(refused).rejects.toThrow("does not have that address");
  });
});
