/**
 * The sink over anything that runs its scripts: a connection to Redis, or a simulated store.
 */
import type { Clock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { OptionError } from "../errors.js";
import type { CallOptions, Sink } from "../sink.js";
import { type Asked, ask } from "./ask.js";
import type { ScriptRequest } from "./attempt.js";
import { FencePolicy } from "./fence-policy.js";
import { type FenceLoss, HeldFences } from "./held-fences.js";
import { type StoredResult, storedResult } from "./read-reply.js";
import { duration, keysOf, wholeMs } from "./request-form.js";
import { SinkWrites } from "./sink-writes.js";
import { writeOrders } from "./write-order.js";

/** What is the same for every sink. */
export interface SinkOptions {
  /** How long a call may take, all retries included. Default: 5000. */
  timeoutMs?: number;
  /** Put before every result key, as other clients do. Part of the key: the fence is that of the whole. */
  keyPrefix?: string;
  /** Which keys are only observed; change it whenever you like. Default: all are enforced. */
  policy?: FencePolicy;
  /**
   * How much longer than its result a fence is kept, in whole milliseconds, where the result expires or is deleted. It
   * must outlive every worker that could still write. Default: fences stay until `compact` removes them.
   */
  retentionMs?: number;
  /** Called for each fence of a claim that the server had lost, after it was raised again. */
  onFenceLoss?: (loss: FenceLoss) => void;
}

export const CALL_TIMEOUT_MS = 5_000;

/** @throws OptionError when an option cannot be used */
export function scriptedSink(
  options: SinkOptions & {
    clock: Clock;
    connection: Asked<ScriptRequest>;
    close: () => Promise<void>;
  },
): Sink {
  const { clock, connection, keyPrefix = "", onFenceLoss = () => {} } = options;
  if (typeof keyPrefix !== "string") throw new OptionError("keyPrefix must be a text");
  const timeoutMs = duration("timeoutMs", options.timeoutMs ?? CALL_TIMEOUT_MS);
  const limitsOf = (call: CallOptions = {}) => ({
    deadline: Deadline.after(duration("timeoutMs", call.timeoutMs ?? timeoutMs), clock),
    signal: call.signal,
  });
  const fences = new HeldFences(onFenceLoss);
  const writes = new SinkWrites({
    ...{ connection, fences, limitsOf, nextOrder: writeOrders(clock) },
    policy: options.policy ?? new FencePolicy(),
    retentionMs: wholeMs("retentionMs", options.retentionMs),
  });
  const full = <Named extends { key: string }>(named: Named): Named =>
    keyPrefix === "" ? named : { ...named, key: keyPrefix + named.key };

  return {
    advanceFence: async (identity, call) => writes.advance(full(identity), limitsOf(call)),
    keepRaised: (identity) => fences.keep(full(identity)),
    commitResult: async (request, call) => writes.commit(full(request), limitsOf(call)),
    commitResults: async (request, call) => {
      const results = request.results.map(full);
      const answer = await writes.commitAll({ ...request, results }, limitsOf(call));
      return "key" in answer ? { ...answer, key: answer.key.slice(keyPrefix.length) } : answer;
    },
    invalidateResult: async (identity, call) => writes.invalidate(full(identity), limitsOf(call)),

    async readResult(key, call) {
      const whole = keyPrefix + key;
      const request = (): ScriptRequest => ({
        ...{ script: "readResult", keys: keysOf(whole).slice(0, 2), values: [] },
      });
      const answerOf = (reply: unknown): StoredResult => storedResult(reply, whole);
      const question = { request, writes: false, answerOf };
      const { answer } = await ask(connection, question, limitsOf(call));
      return { ...answer, key };
    },

    close: options.close,
  };
}
