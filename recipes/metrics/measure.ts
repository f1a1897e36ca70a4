/**
 * Turns what fencekeeper tells on its channels into measurements, for whatever counts them.
 */
import {
  type ClaimEvent,
  listen,
  type SessionEvent,
  type SinkEvent,
} from "../../lib/telemetry/channels.js";
import type { InstrumentName, LabelsOf } from "./instruments.js";
import { LimitedNames } from "./limited-names.js";

/** What counts: a counter is increased by the number, a histogram takes it as one observation. */
export interface Recorder {
  record<Name extends InstrumentName>(name: Name, labels: LabelsOf<Name>, value: number): void;
}

export interface MeasureOptions {
  /** Most prefixes of keys, and of jobs, that are told apart; later ones count as `(other)`. Default: 100. */
  prefixesMax?: number;
}

/** Records from now on; gives a function that stops it. */
export function measure(
  recorder: Recorder,
  { prefixesMax = 100 }: MeasureOptions = {},
): () => void {
  const keys = new LimitedNames(prefixesMax);
  const jobs = new LimitedNames(prefixesMax);
  const stops = [
    listen("sink", (event) => {
      recordSink(recorder, { ...event, keyPrefix: keys.limited(event.keyPrefix) });
    }),
    listen("claim", (event) => {
      recordClaim(recorder, { ...event, jobPrefix: jobs.limited(event.jobPrefix) });
    }),
    listen("session", (event) => recordSession(recorder, event)),
  ];
  return () => {
    for (const stop of stops.splice(0)) stop();
  };
}

function recordSink(recorder: Recorder, event: SinkEvent): void {
  const { operation, outcome, refusal, code, keyPrefix: key_prefix } = event;
  if (operation === "fence") {
    recorder.record("fencekeeper.fence.losses", { key_prefix }, 1);
    return;
  }
  recorder.record("fencekeeper.sink.calls", { operation, outcome }, 1);
  const seconds = event.durationMs / 1_000;
  recorder.record("fencekeeper.sink.call.duration", { operation }, seconds);
  if (code !== undefined) recorder.record("fencekeeper.sink.errors", { operation, code }, 1);
  if ((refusal ?? outcome) === "stale") {
    const effect = refusal === undefined ? "refused" : "observed";
    recorder.record("fencekeeper.stale.writes", { key_prefix, operation, effect }, 1);
  }
  if (outcome === "unknown") {
    recorder.record("fencekeeper.unknown.outcomes", { key_prefix, operation }, 1);
  }
}

function recordClaim(recorder: Recorder, event: ClaimEvent): void {
  const { kind, jobPrefix: job_prefix } = event;
  switch (kind) {
    case "granted":
    case "busy":
    case "failed":
      recorder.record("fencekeeper.claims", { job_prefix, outcome: kind }, 1);
      recorder.record("fencekeeper.claim.wait", { outcome: kind }, event.waitMs / 1_000);
      break;
    case "lost":
      recorder.record("fencekeeper.claims.lost", { reason: event.reason }, 1);
      recorder.record("fencekeeper.claim.held", { ending: kind }, event.heldMs / 1_000);
      break;
    case "released":
      recorder.record("fencekeeper.claim.held", { ending: kind }, event.heldMs / 1_000);
  }
}

function recordSession(recorder: Recorder, { state }: SessionEvent): void {
  recorder.record("fencekeeper.session.changes", { state }, 1);
}
