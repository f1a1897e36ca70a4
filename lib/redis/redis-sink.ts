/**
 * The sink in Redis: checks what it is given, and lets the scripts decide.
 *
 * A write whose reply is lost is asked for again with the same token until its deadline. Such a repeat is answered as
 * any other call would be: `duplicate` or `current` may then mean that the first attempt did it, and `stale` that a
 * newer token came after it or instead of it; whichever it was, nothing of a newer token was overwritten.
 */
import { type Clock, systemClock } from "../clock.js";
import type { Sink } from "../sink.js";
import { RedisConnection } from "./connection.js";
import { duration } from "./request-form.js";
import { CALL_TIMEOUT_MS, type SinkOptions, scriptedSink } from "./scripted-sink.js";

export interface RedisSinkOptions extends SinkOptions {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  url: string;
  /** How long one connect may take. Default: 2000. */
  connectTimeoutMs?: number;
  /**
   * How long the server may be silent while a reply is due, before another connection is tried. Raise it together
   * with `timeoutMs` where large results go over slow links. Default: half of `timeoutMs`.
   */
  replyTimeoutMs?: number;
  /** The connection's name in `CLIENT LIST`. Default: `fencekeeper`. */
  name?: string;
  clock?: Clock;
}

/**
 * Opens a sink. It connects with the first call; a wrong address or password is told then.
 *
 * @throws OptionError when an option cannot be used
 */
export function openRedisSink(options: RedisSinkOptions): Sink {
  const timeoutMs = duration("timeoutMs", options.timeoutMs ?? CALL_TIMEOUT_MS);
  const clock = options.clock ?? systemClock;
  const connection = new RedisConnection({
    url: options.url,
    connectTimeoutMs: duration("connectTimeoutMs", options.connectTimeoutMs ?? 2000),
    replyTimeoutMs: duration("replyTimeoutMs", options.replyTimeoutMs ?? Math.ceil(timeoutMs / 2)),
    name: options.name ?? "fencekeeper",
    clock,
  });
  return scriptedSink({ ...options, clock, connection, close: () => connection.close() });
}
