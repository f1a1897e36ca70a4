/**
 * Goal: what happens at real servers is in the metrics, in a program and under `run --metrics-port`.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { beforeEach, describe, expect, inject, it, onTestFinished } from "vitest";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { makeToken } from "../../lib/token.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { fencedRun } from "../../recipes/fenced-run.js";
import { PrometheusMetrics } from "../../recipes/metrics/prometheus.js";
import { cli, startCli } from "../support/cli.js";
import { type Exposition, readExposition } from "../support/exposition.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { freePort, startRedis } from "../support/redis-for-test.js";

let id: string;
let metrics: PrometheusMetrics;

beforeEach(() => {
  id = randomUUID();
  metrics = new PrometheusMetrics();
  onTestFinished(() => metrics.stop());
});

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });
const samples = () => readExposition(metrics.text()).samples;

describe("the metrics of a program", () => {
  it("show a stale write by its key's prefix", async () => {
    const sink = openRedisSink({ url: inject("redis") });
    onTestFinished(() => sink.close());
    const write = { key: `report:${id}`, job: id, value: "v" };
    await sink.commitResult({ ...write, token: token(2) });
    await sink.commitResult({ ...write, token: token(1) });
    expect(
      samples().get(
        'fencekeeper_stale_writes_total{key_prefix="report",operation="commit",effect="refused"}',
      ),
    ).toBe(1);
    expect(metrics.text()).not.toContain(id);
  });

  it("show a fence that the server had lost, by its key's prefix", async () => {
    const redis = await startRedis();
    const sink = openRedisSink({ url: redis.url, keyPrefix: "app:" });
    onTestFinished(async () => {
      await sink.close();
      await redis.stop();
    });
    const identity = { key: `report:${id}`, job: id, token: token(2) };
    await sink.advanceFence(identity);
    const letGo = sink.keepRaised(identity);
    await rawRedisAt(redis.url, "FLUSHALL");
    expect(await sink.commitResult({ ...identity, value: "v" })).toMatchObject({
      outcome: "committed",
    });
    letGo();
    expect(samples().get('fencekeeper_fence_losses_total{key_prefix="report"}')).toBe(1);
  });

  it("show a write that failed, by the code of its error", async () => {
    const sink = openRedisSink({ url: `redis://127.0.0.1:${await freePort()}`, timeoutMs: 200 });
    onTestFinished(() => sink.close());
    const write = { key: `report:${id}`, job: id, value: "v", token: token(2) };
    await expect(sink.commitResult(write)).rejects.toThrow("could not be reached");
    const labels = 'operation="commit",code="SINK_UNREACHABLE"';
    expect(samples().get(`fencekeeper_sink_errors_total{${labels}}`)).toBe(1);
  });

  it("show a fenced run: its session, its claim and its commit", async () => {
    const zookeeper = new ZooKeeper({ connect: inject("zookeeper") });
    const sink = openRedisSink({ url: inject("redis"), keyPrefixOf: () => "mine" });
    const job = `nightly:${id}`;
    const answer = await fencedRun(
      { zookeeper, job, result: { sink, key: `report:${id}` } },
      async () => "the result",
    );
    await Promise.all([zookeeper.close(), sink.close()]);
    expect(answer.outcome).toBe("committed");
    const seen = samples();
    for (const name of [
      'sink_calls_total{operation="advance",outcome="advanced"}',
      'sink_calls_total{operation="commit",outcome="committed"}',
      'claims_total{job_prefix="nightly",outcome="granted"}',
      'claim_held_seconds_count{ending="released"}',
      'session_changes_total{state="CONNECTED"}',
      'session_changes_total{state="CLOSED"}',
    ]) {
      expect([name, seen.get(`fencekeeper_${name}`)]).toEqual([name, 1]);
    }
  });
});

describe("run --metrics-port", () => {
  const scrape = async (url: string): Promise<Exposition> =>
    readExposition(await (await fetch(`${url}/metrics`)).text());

  it("serves the metrics on a free port while the command runs, and no longer", async () => {
    const held = startCli(["run", `lasting:${id}`, "--metrics-port", "0", "--", "sleep", "600"]);
    await held.until("claim granted");
    const url = /metrics at (http:\S+)\/metrics/.exec(held.stderr)?.[1] ?? "";
    const { samples: seen } = await scrape(url);
    expect(seen.get('fencekeeper_claims_total{job_prefix="lasting",outcome="granted"}')).toBe(1);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    held.signal("SIGTERM");
    expect((await held.ended).status).toBe(143);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it.each(["http", "-1", "65536", "", "1.5"])("exits with 64 for the port %j", async (port) => {
    const end = await cli(["run", id, `--metrics-port=${port}`, "--", "true"]);
    expect(end.status).toBe(64);
    expect(end.stderr).toContain("--metrics-port takes a number");
  });

  it("exits with 78 when the port is taken, and does not run the command", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => {
      taken.close();
    });
    const address = taken.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const end = await cli(["run", id, `--metrics-port=${port}`, "--", "echo", "ran"]);
    expect([end.status, end.stdout.toString()]).toEqual([78, ""]);
    expect(end.stderr).toContain("another process listens there");
  });
});
