/**
 * The sink in Redis: checks what it is given, and lets the scripts decide.
 *
 * A write whose reply is lost is asked for again with the same token until its deadline. Such a repeat is answered as
 * any other call would be: `duplicate` or `current` may then mean that the first attempt did it, and `stale` that a
 * newer token came after it or instead of it; whichever it was, nothing of a newer token was overwritten.
 */
import { type Clock, systemClock } from "../clock.js";
import type { Sink } from "../sink.js";
import type { PrefixOf } from "../telemetry/prefix.js";
import type { TlsOptions } from "../tls/tls-options.js";
import { RedisConnection } from "./connection.js";
import type { FenceLoss } from "./held-fences.js";
import { duration } from "./request-form.js";
import { CALL_TIMEOUT_MS, type SinkOptions, scriptedSink } from "./scripted-sink.js";
import { tellFenceLoss, toldSink } from "./told-sink.js";

export interface RedisSinkOptions extends SinkOptions {
  /**
   * `redis://[user:password@]host[:port][/database]`, `redis-sentinel://[…@]host[:port],…[/database]#NAME` or
   * `redis-cluster://[…@]host[:port],…`; `rediss` in place of `redis` for TLS.
   */
  url: string;
  /** Of the server, where it is not in the address: a text that shows up in fewer places. */
  password?: string | undefined;
  /** Own certificates, for a `rediss` address. Chain and name are always verified. */
  tls?: TlsOptions | undefined;
  /** Of the sentinels, which have users of their own. */
  sentinelPassword?: string | undefined;
  /** Other addresses for those that sentinels or nodes of a cluster tell, by `host:port`: for tunnels. */
  natMap?: Record<string, { host: string; port: number }>;
  /** How long one connect may take. Default: 2000. */
  connectTimeoutMs?: number;
  /**
   * How long the server may be silent while a reply is due, before another connection is tried. Raise it together
   * with `timeoutMs` where large results go over slow links. Default: half of `timeoutMs`.
   */
  replyTimeoutMs?: number;
  /** The connection's name in `CLIENT LIST`. Default: `fencekeeper`. */
  name?: string;
  /** What stands for a key in metrics. Default: the text before its first colon. */
  keyPrefixOf?: PrefixOf;
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
  const { url, password, tls, sentinelPassword, natMap } = options;
  const replyTimeoutMs = options.replyTimeoutMs ?? Math.ceil(timeoutMs / 2);
  const { keyPrefixOf } = options;
  const sink = scriptedSink({
    ...{ ...options, clock },
    onFenceLoss: (loss: FenceLoss) => {
      tellFenceLoss(loss.key, keyPrefixOf);
      options.onFenceLoss?.(loss);
    },
    connect: (onOtherServer) =>
      new RedisConnection({
        ...{ url, password, tls, sentinelPassword, natMap, clock, onOtherServer },
        connectTimeoutMs: duration("connectTimeoutMs", options.connectTimeoutMs ?? 2000),
        replyTimeoutMs: duration("replyTimeoutMs", replyTimeoutMs),
        name: options.name ?? "fencekeeper",
      }),
  });
  return toldSink(sink, { clock, keyPrefixOf });
}
