/**
 * Goal: what is told becomes the right numbers, in a text that Prometheus reads. Method: events as fencekeeper
 * publishes them, and the text read back with a strict reader.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { OptionError } from "../../lib/errors.js";
import {
  type ClaimEvent,
  claimChannel,
  type SinkEvent,
  sessionChannel,
  sinkChannel,
} from "../../lib/telemetry/channels.js";
import { instruments, prometheusName } from "../../recipes/metrics/instruments.js";
import { PrometheusMetrics } from "../../recipes/metrics/prometheus.js";
import { readExposition } from "../support/exposition.js";

function collecting(options = {}): PrometheusMetrics {
  const metrics = new PrometheusMetrics(options);
  onTestFinished(() => metrics.stop());
  return metrics;
}

const ofSink = (event: Partial<SinkEvent>) =>
  sinkChannel.publish({
    operation: "commit",
    outcome: "committed",
    keyPrefix: "report",
    durationMs: 3,
    ...event,
  });
const ofClaim = (event: ClaimEvent) => claimChannel.publish(event);

describe("the metrics of the sink", () => {
  it("count calls by operation and outcome, whatever the outcome is called", () => {
    const metrics = collecting();
    ofSink({});
    ofSink({});
    ofSink({ outcome: "superseded" });
    ofSink({ operation: "read", outcome: "present" });
    const { samples } = readExposition(metrics.text());
    const calls = (labels: string) => samples.get(`fencekeeper_sink_calls_total{${labels}}`);
    expect(calls('operation="commit",outcome="committed"')).toBe(2);
    expect(calls('operation="commit",outcome="superseded"')).toBe(1);
    expect(calls('operation="read",outcome="present"')).toBe(1);
  });

  it("count stale writes by key prefix, and tell refused ones from observed ones", () => {
    const metrics = collecting();
    ofSink({ outcome: "stale" });
    ofSink({ outcome: "observed", refusal: "stale" });
    ofSink({ outcome: "observed", refusal: "foreign" });
    const stale = metrics.text().match(/^fencekeeper_stale_writes_total.*$/gm);
    expect(stale).toEqual([
      'fencekeeper_stale_writes_total{key_prefix="report",operation="commit",effect="refused"} 1',
      'fencekeeper_stale_writes_total{key_prefix="report",operation="commit",effect="observed"} 1',
    ]);
  });

  it("count unknown outcomes, errors and lost fences", () => {
    const metrics = collecting();
    ofSink({ outcome: "unknown", code: "SINK_OUTCOME_UNKNOWN" });
    ofSink({ operation: "fence", outcome: "lost", durationMs: 0 });
    const { samples } = readExposition(metrics.text());
    const prefix = 'key_prefix="report"';
    expect(samples.get(`fencekeeper_unknown_outcomes_total{${prefix},operation="commit"}`)).toBe(1);
    expect(samples.get(`fencekeeper_fence_losses_total{${prefix}}`)).toBe(1);
    const errors = 'fencekeeper_sink_errors_total{operation="commit",code="SINK_OUTCOME_UNKNOWN"}';
    expect(samples.get(errors)).toBe(1);
    expect(samples.get('fencekeeper_sink_call_duration_seconds_count{operation="fence"}')).toBe(
      undefined,
    );
  });

  it("put each duration into the buckets that it fits in, its own upper end included", () => {
    const metrics = collecting();
    for (const durationMs of [0.5, 1, 3, 60_000]) ofSink({ durationMs });
    const { samples } = readExposition(metrics.text());
    const name = "fencekeeper_sink_call_duration_seconds";
    const upTo = (le: string) => samples.get(`${name}_bucket{operation="commit",le="${le}"}`);
    expect([upTo("0.001"), upTo("0.0025"), upTo("0.005"), upTo("10"), upTo("+Inf")]).toEqual([
      2, 2, 3, 3, 4,
    ]);
    expect(samples.get(`${name}_count{operation="commit"}`)).toBe(4);
    expect(samples.get(`${name}_sum{operation="commit"}`)).toBeCloseTo(60.0045);
  });

  it("stay bounded when every key has a prefix of its own", () => {
    const metrics = collecting({ prefixesMax: 2 });
    for (const keyPrefix of ["a", "b", "c", "d", "a"]) ofSink({ outcome: "stale", keyPrefix });
    const { samples } = readExposition(metrics.text());
    const stale = (prefix: string) =>
      samples.get(
        `fencekeeper_stale_writes_total{key_prefix="${prefix}",operation="commit",effect="refused"}`,
      );
    expect(["a", "b", "c", "(other)"].map(stale)).toEqual([2, 1, undefined, 2]);
  });

  it.each([0, 1.5, Number.NaN])("cannot be bounded to %s prefixes", (prefixesMax) => {
    expect(() => new PrometheusMetrics({ prefixesMax })).toThrow(OptionError);
  });
});

describe("the metrics of claims and sessions", () => {
  it("count claims by outcome, how long they waited, how they ended and how long they were held", () => {
    const metrics = collecting();
    const jobPrefix = "nightly";
    ofClaim({ jobPrefix, kind: "granted", waitMs: 20 });
    ofClaim({ jobPrefix, kind: "busy", waitMs: 400, ahead: 2 });
    ofClaim({ jobPrefix, kind: "failed", waitMs: 5_000, code: "ZOOKEEPER_UNREACHABLE" });
    ofClaim({ jobPrefix, kind: "lost", heldMs: 9_000, reason: "deadline" });
    ofClaim({ jobPrefix, kind: "released", heldMs: 200, confirmed: true });
    const { samples } = readExposition(metrics.text());
    for (const outcome of ["granted", "busy", "failed"]) {
      const labels = `{job_prefix="nightly",outcome="${outcome}"}`;
      expect(samples.get(`fencekeeper_claims_total${labels}`)).toBe(1);
      expect(samples.get(`fencekeeper_claim_wait_seconds_count{outcome="${outcome}"}`)).toBe(1);
    }
    expect(samples.get('fencekeeper_claims_lost_total{reason="deadline"}')).toBe(1);
    expect(samples.get('fencekeeper_claim_held_seconds_sum{ending="lost"}')).toBe(9);
    expect(samples.get('fencekeeper_claim_held_seconds_sum{ending="released"}')).toBe(0.2);
  });

  it("are there at zero before anything has happened, so that the first loss is an increase", () => {
    const { samples } = readExposition(collecting().text());
    expect(samples.get('fencekeeper_claims_lost_total{reason="expired"}')).toBe(0);
    expect(samples.get('fencekeeper_session_changes_total{state="LOST"}')).toBe(0);
  });

  it("count the changes of a session to each state", () => {
    const metrics = collecting();
    sessionChannel.publish({ session: "1", state: "CONNECTED", previous: "SUSPENDED" });
    const { samples } = readExposition(metrics.text());
    expect(samples.get('fencekeeper_session_changes_total{state="CONNECTED"}')).toBe(1);
  });
});

describe("the text for Prometheus", () => {
  it("explains every metric, with names and types as the naming rules want them", () => {
    const { types, helps } = readExposition(collecting().text());
    expect([...types.keys()]).toEqual(instruments.map(([name]) => prometheusName(name)));
    expect([...helps.keys()]).toEqual([...types.keys()]);
    for (const [name, type] of types) {
      expect(name).toMatch(/^fencekeeper(?:_[a-z]+)+$/);
      expect(name).toMatch(type === "counter" ? /_total$/ : /_seconds$/);
    }
  });

  it("escapes what a prefix may hold", () => {
    const metrics = collecting();
    const keyPrefix = 'a"b\\c\nd{e} 1';
    ofSink({ outcome: "stale", keyPrefix });
    const line = metrics.text().match(/^fencekeeper_stale_writes_total.*$/m)?.[0];
    expect(line).toContain('key_prefix="a\\"b\\\\c\\nd{e} 1"');
    expect([...readExposition(metrics.text()).samples.keys()]).toContain(
      `fencekeeper_stale_writes_total{key_prefix=${JSON.stringify(keyPrefix)},operation="commit",effect="refused"}`,
    );
  });

  it("does not change any more once its collector is stopped", () => {
    const metrics = collecting();
    ofSink({});
    metrics.stop();
    const before = metrics.text();
    ofSink({});
    expect(metrics.text()).toBe(before);
    expect(sinkChannel.hasSubscribers).toBe(false);
  });
});
