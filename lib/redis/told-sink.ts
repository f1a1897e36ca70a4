/**
 * A sink that tells on the channel `fencekeeper:sink` how each call ended. It changes no answer, and looks at nothing
 * while nobody listens.
 */
import type { Clock } from "../clock.js";
import { FencekeeperError, SinkOutcomeUnknownError } from "../errors.js";
import type { CallOptions, ReadAnswer, Sink } from "../sink.js";
import { type SinkEvent, sinkChannel } from "../telemetry/channels.js";
import { type PrefixOf, safePrefix } from "../telemetry/prefix.js";

export interface TellingOptions {
  clock: Clock;
  /** What stands for a key in the events. Default: the text before its first colon. */
  keyPrefixOf?: PrefixOf | undefined;
}

/** What is told of an answer; `key` is the one that decided it, where a call was for several. */
interface Told {
  outcome: string;
  key?: string;
  refusal?: { outcome: string };
}

interface Call<Answer> {
  operation: SinkEvent["operation"];
  key: string;
  options: CallOptions | undefined;
  run: () => Promise<Answer>;
  told: (answer: Answer) => Told;
}

export function toldSink(sink: Sink, telling: TellingOptions): Sink {
  const tell = <Answer>(call: Call<Answer>) =>
    sinkChannel.hasSubscribers ? tellOf(call, telling) : call.run();
  return {
    ...sink,
    async advanceFence(identity, options) {
      const run = () => sink.advanceFence(identity, options);
      return tell({ operation: "advance", key: identity.key, options, run, told: asItIs });
    },
    async commitResult(request, options) {
      const run = () => sink.commitResult(request, options);
      return tell({ operation: "commit", key: request.key, options, run, told: asItIs });
    },
    async commitResults(request, options) {
      const run = () => sink.commitResults(request, options);
      const key = request.results[0]?.key ?? "";
      return tell({ operation: "commit", key, options, run, told: asItIs });
    },
    async invalidateResult(identity, options) {
      const run = () => sink.invalidateResult(identity, options);
      return tell({ operation: "invalidate", key: identity.key, options, run, told: asItIs });
    },
    async readResult(key, options) {
      const run = () => sink.readResult(key, options);
      return tell({ operation: "read", key, options, run, told: found });
    },
    async waitFor(key, options) {
      const run = () => sink.waitFor(key, options);
      return tell({ operation: "wait", key, options, run, told: asItIs });
    },
  };
}

/** Tells that the server had lost the fence of a claim that is held. */
export function tellFenceLoss(key: string, keyPrefixOf?: PrefixOf): void {
  if (!sinkChannel.hasSubscribers) return;
  const keyPrefix = safePrefix(key, keyPrefixOf);
  sinkChannel.publish({ operation: "fence", outcome: "lost", keyPrefix, durationMs: 0 });
}

async function tellOf<Answer>(
  { operation, key, options, run, told }: Call<Answer>,
  { clock, keyPrefixOf }: TellingOptions,
): Promise<Answer> {
  const startMs = clock.nowMs();
  const publish = (what: Pick<SinkEvent, "outcome" | "refusal" | "code">, decisive = key) => {
    const keyPrefix = safePrefix(decisive, keyPrefixOf);
    sinkChannel.publish({ operation, keyPrefix, durationMs: clock.nowMs() - startMs, ...what });
  };
  let answer: Answer;
  try {
    answer = await run();
  } catch (error) {
    publish(ended(error, options));
    throw error;
  }
  const { outcome, refusal, key: decisive } = told(answer);
  publish(refusal === undefined ? { outcome } : { outcome, refusal: refusal.outcome }, decisive);
  return answer;
}

const asItIs = (answer: Told) => answer;

function found({ value, matches }: ReadAnswer): Told {
  if (value === undefined) return { outcome: "absent" };
  return { outcome: matches === false ? "overwritten" : "present" };
}

function ended(error: unknown, options: CallOptions = {}): { outcome: string; code?: string } {
  if (error instanceof SinkOutcomeUnknownError) return { outcome: "unknown", code: error.code };
  const { signal } = options;
  if (signal?.aborted && error === signal.reason) return { outcome: "cancelled" };
  return { outcome: "failed", code: error instanceof FencekeeperError ? error.code : "OTHER" };
}
