/**
 * Goal: OpenTelemetry gets the same numbers as Prometheus, and a span around a run. Method: its own SDK in memory.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  SpanStatusCode,
} from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { claimChannel, sinkChannel } from "../../lib/telemetry/channels.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { instruments } from "../../recipes/metrics/instruments.js";
import { meterInstruments } from "../../recipes/opentelemetry/instruments.js";
import { tracedRun } from "../../recipes/opentelemetry/traced-run.js";
import { HandMadeSession } from "../support/hand-made-session.js";

describe("the instruments", () => {
  it("hand each measurement to the meter, with labels and buckets", async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter });
    const provider = new MeterProvider({ readers: [reader] });
    onTestFinished(() => provider.shutdown());
    const stop = meterInstruments({ meter: provider.getMeter("test") });
    const stale = { operation: "commit", outcome: "stale", keyPrefix: "report" } as const;
    sinkChannel.publish({ ...stale, durationMs: 30 });
    claimChannel.publish({ jobPrefix: "nightly", kind: "granted", waitMs: 2_000 });
    stop();
    sinkChannel.publish({ ...stale, durationMs: 30 });
    await provider.forceFlush();
    const metrics = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics[0]?.metrics ?? []);
    const points = (name: string) =>
      metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints;
    expect(points("fencekeeper.stale.writes")).toMatchObject([
      { value: 1, attributes: { key_prefix: "report", operation: "commit", effect: "refused" } },
    ]);
    expect(points("fencekeeper.sink.call.duration")).toMatchObject([{ value: { sum: 0.03 } }]);
    expect(points("fencekeeper.claim.wait")).toMatchObject([
      { value: { sum: 2, buckets: { boundaries: expect.arrayContaining([3_600]) } } },
    ]);
    const units = new Map(instruments.map(([name, { unit }]) => [name as string, unit]));
    for (const { descriptor } of metrics) {
      expect(descriptor.unit).toBe(units.get(descriptor.name));
    }
  });

  it("do nothing, and harm nothing, where no SDK is registered", () => {
    const stop = meterInstruments();
    sinkChannel.publish({ operation: "read", outcome: "absent", keyPrefix: "k", durationMs: 1 });
    stop();
    expect(sinkChannel.hasSubscribers).toBe(false);
  });
});

/** Lets a span be the active one through awaits; an SDK for Node brings such a manager. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  bind = <T>(_context: Context, target: T) => target;
  enable = () => this;
  disable = () => this;

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context,
    work: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(active, () => work.apply(self, args));
  }
}

describe("a traced run", () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tracer = provider.getTracer("test");
  const session = new HandMadeSession("0000000003");
  const zookeeper = { clock: session.clock, session: async () => session };
  const token = "00000.00000000000000000007.0000000003";

  beforeAll(() => {
    context.setGlobalContextManager(new Contexts());
  });
  afterAll(async () => {
    context.disable();
    await provider.shutdown();
  });
  beforeEach(() => {
    exporter.reset();
    session.nodes.clear();
  });

  it("has a span with the job, the token and the outcome, and the handler's own spans below it", async () => {
    const answer = await tracedRun({ zookeeper, job: "nightly:2024", tracer }, async () => {
      tracer.startSpan("inner").end();
      return undefined;
    });
    expect(answer.outcome).toBe("done");
    const [inner, run] = exporter.getFinishedSpans();
    expect(run).toMatchObject({
      name: "fencekeeper run",
      attributes: {
        "fencekeeper.job": "nightly:2024",
        "fencekeeper.outcome": "done",
        "fencekeeper.token": token,
      },
      events: [{ name: "granted" }],
      status: { code: SpanStatusCode.UNSET },
    });
    expect(inner?.parentSpanContext?.spanId).toBe(run?.spanContext().spanId);
  });

  it("is no error when somebody else holds the claim, and one when the handler throws", async () => {
    const options = { zookeeper, job: "nightly:2024", tracer };
    const failing = tracedRun(options, () => Promise.reject(new Error("the work failed")));
    await expect(failing).rejects.toThrow("the work failed");
    session.nodes.add(`${claimPath(options.job)}/_c_${randomUUID()}-lock-0000000001`);
    expect(await tracedRun(options, async () => "never")).toMatchObject({ outcome: "busy" });
    const [failed, busy] = exporter.getFinishedSpans();
    expect(failed?.status.code).toBe(SpanStatusCode.ERROR);
    expect(failed?.events.map(({ name }) => name)).toEqual(["granted", "exception"]);
    expect(busy?.status.code).toBe(SpanStatusCode.UNSET);
    expect(busy?.attributes["fencekeeper.outcome"]).toBe("busy");
  });
});
