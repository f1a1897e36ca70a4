/**
 * A sink without a fence: it writes as people write who only check before. It is the control that shows, in the demo
 * and in chaos runs, what the fence prevents; nothing else should use it.
 */
import { type Clock, systemClock } from "../clock.js";
import { Deadline } from "../deadline.js";
import { OptionError } from "../errors.js";
import type { CallOptions, ResultChange, Sink } from "../sink.js";
import { ask } from "./ask.js";
import type { CommandRequest } from "./attempt.js";
import { RedisConnection } from "./connection.js";

const TIMEOUT_MS = 5_000;

export interface UnfencedSink extends Sink {
  /** Deletes keys, fences too: nothing protects them afterwards. */
  remove(keys: string[]): Promise<void>;
}

/** @throws OptionError when the URL cannot be used */
export function openUnfencedSink({
  url,
  clock = systemClock,
}: {
  url: string;
  clock?: Clock;
}): UnfencedSink {
  const connection = new RedisConnection({
    url,
    connectTimeoutMs: TIMEOUT_MS,
    replyTimeoutMs: TIMEOUT_MS,
    name: "fencekeeper-unfenced",
    clock,
  });
  const send = (request: CommandRequest, { timeoutMs = TIMEOUT_MS, signal }: CallOptions = {}) => {
    const writes = request.command !== "GET";
    const question = { request: () => request, writes, answerOf: bytesOf };
    return ask(connection, question, { deadline: Deadline.after(timeoutMs, clock), signal });
  };
  const put = ({ key, value }: ResultChange, call?: CallOptions) => {
    if (value === undefined) return send({ command: "DEL", values: [key] }, call);
    const bytes = typeof value === "string" ? value : Buffer.from(value);
    return send({ command: "SET", values: [key, bytes] }, call);
  };
  return {
    async advanceFence() {
      return { outcome: "advanced", present: undefined };
    },
    keepRaised: () => () => {},
    async commitResult(request, call) {
      await put(request, call);
      return { outcome: "committed", revision: 1 };
    },
    async commitResults({ results }, call) {
      for (const result of results) await put(result, call);
      return { outcome: "committed", revisions: results.map(() => 1) };
    },
    async invalidateResult({ key }, call) {
      await put({ key, value: undefined }, call);
      return { outcome: "invalidated", found: true };
    },
    async readResult(key, call) {
      const value = await send({ command: "GET", values: [key] }, call);
      return { key, value, fence: undefined, matches: undefined };
    },
    async waitFor() {
      throw new OptionError("a sink without a fence cannot tell what was committed: read instead");
    },
    async remove(keys) {
      await send({ command: "DEL", values: keys });
    },
    close: () => connection.close(),
  };
}

function bytesOf(reply: unknown): Buffer | undefined {
  return Buffer.isBuffer(reply) ? reply : undefined;
}
