/**
 * The sink over anything that runs its scripts: a connection to Redis, or a simulated store.
 */
import type { Clock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { OptionError } from "../errors.js";
import type { CallOptions, ReadAnswer, Sink } from "../sink.js";
import { type Asked, ask } from "./ask.js";
import type { Limits, ScriptRequest } from "./attempt.js";
import { type DurabilityOptions, waitFor } from "./durability.js";
import { fenceKeyOf } from "./fence-key.js";
import { FencePolicy } from "./fence-policy.js";
import { type FenceLoss, HeldFences } from "./held-fences.js";
import { OpenWaits } from "./open-waits.js";
import { type StoredResult, storedResult } from "./read-reply.js";
import { duration, keysOf, wholeMs } from "./request-form.js";
import { SinkWrites } from "./sink-writes.js";
import { type CompressOptions, givenValue } from "./value-form.js";
import { newerThanOf, waitForResult } from "./wait-for-result.js";
import type { Watcher, Watching } from "./watcher.js";
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
  /**
   * Results from so many bytes on are put at a key of their own first, and moved into place by the script, because a
   * value that passes through Lua is copied. Default: 100 KB.
   */
  stageFromBytes?: number;
  /** Stores larger results compressed with gzip. Readers that use a plain GET see the compressed bytes. */
  compress?: CompressOptions;
  /** What a write waits for after it was accepted. Default: nothing. The answer tells what was reached. */
  durability?: DurabilityOptions;
  /** Called for each fence of a claim that the server had lost, after it was raised again. */
  onFenceLoss?: (loss: FenceLoss) => void;
}

/** What runs the scripts, until it is closed. */
export interface SinkConnection extends Asked<ScriptRequest> {
  /** Watches a key, after something was read there. */
  watch(key: string, watcher: Watcher, limits: Limits): Promise<Watching>;
  close(): Promise<void>;
}

export const CALL_TIMEOUT_MS = 5_000;

/** Default of {@link SinkOptions.stageFromBytes}. */
export const STAGE_FROM_BYTES = 100 * 1_024;

/** @throws OptionError when an option cannot be used */
export function scriptedSink(
  options: SinkOptions & {
    clock: Clock;
    /** Opens the connection; it is told what to do before anything is sent to another server. */
    connect: (onOtherServer: (server: Asked<ScriptRequest>) => Promise<void>) => SinkConnection;
  },
): Sink {
  const { clock, keyPrefix = "", onFenceLoss = () => {}, durability, compress } = options;
  if (typeof keyPrefix !== "string") throw new OptionError("keyPrefix must be a text");
  const timeoutMs = duration("timeoutMs", options.timeoutMs ?? CALL_TIMEOUT_MS);
  const limitsOf = (call: CallOptions = {}) => ({
    deadline: Deadline.after(duration("timeoutMs", call.timeoutMs ?? timeoutMs), clock),
    signal: call.signal,
  });
  const fences = new HeldFences((loss) =>
    onFenceLoss({ ...loss, key: loss.key.slice(keyPrefix.length) }),
  );
  if (durability !== undefined) waitFor(durability); // tells at once what is wrong with it
  const connection = options.connect((server) => writes.raiseAll(server));
  const writes = new SinkWrites({
    ...{ connection, fences, limitsOf, durability, compress, nextOrder: writeOrders(clock) },
    policy: options.policy ?? new FencePolicy(),
    retentionMs: wholeMs("retentionMs", options.retentionMs),
    stageFromBytes: options.stageFromBytes ?? STAGE_FROM_BYTES,
  });
  const full = <Named extends { key: string }>(named: Named): Named =>
    keyPrefix === "" ? named : { ...named, key: keyPrefix + named.key };

  const waits = new OpenWaits();

  async function read(key: string, limits: Limits): Promise<ReadAnswer> {
    const whole = keyPrefix + key;
    const request = (): ScriptRequest => ({
      ...{ script: "readResult", keys: keysOf(whole).slice(0, 2), values: [] },
    });
    const answerOf = (reply: unknown): StoredResult => storedResult(reply, whole);
    const question = { request, writes: false, answerOf };
    const { answer, encoding } = await ask(connection, question, limits);
    const { value, matches } = answer;
    if (value === undefined || !matches) return { ...answer, key };
    return { ...answer, key, value: await givenValue(value, encoding) };
  }

  return {
    advanceFence: async (identity, call) => writes.advance(full(identity), limitsOf(call)),
    keepRaised: (identity) => fences.keep(full(identity)),
    commitResult: async (request, call) => writes.commit(full(request), limitsOf(call)),
    commitResults: async (request, call) => {
      const results = request.results.map(full);
      const guards = (request.guards ?? []).map((key) => keyPrefix + key);
      const answer = await writes.commitAll({ ...request, results, guards }, limitsOf(call));
      return "key" in answer ? { ...answer, key: answer.key.slice(keyPrefix.length) } : answer;
    },
    invalidateResult: async (identity, call) => writes.invalidate(full(identity), limitsOf(call)),

    readResult: async (key, call) => read(key, limitsOf(call)),

    async waitFor(key, call = {}) {
      const fenceKey = fenceKeyOf(keyPrefix + key);
      const newerThan = newerThanOf(call.newerThan);
      const { timeoutMs: waitMs } = call;
      // the sink's own timeout is for what takes one reply; who waits says for how long, or aborts
      const forMs = waitMs === undefined ? Number.POSITIVE_INFINITY : duration("timeoutMs", waitMs);
      const deadline = Deadline.after(forMs, clock);
      return waits.run(call.signal, (signal) => {
        const watch = (watcher: Watcher, limits: Limits) =>
          connection.watch(fenceKey, watcher, limits);
        const wait = { watch, read: (limits: Limits) => read(key, limits), newerThan };
        return waitForResult(wait, { deadline, signal });
      });
    },

    close() {
      waits.close();
      return connection.close();
    },
  };
}
