/**
 * How the doctor asks one Redis server: single commands that write nothing, with binary replies.
 */
import { systemClock } from "../../../lib/clock.js";
import { Deadline } from "../../../lib/deadline.js";
import { ask } from "../../../lib/redis/ask.js";
import { RedisConnection } from "../../../lib/redis/connection.js";
import type { RedisSinkOptions } from "../../../lib/redis/redis-sink.js";

export interface RedisReader {
  /** Where the server is, for messages. */
  readonly place: string;
  /**
   * One command that only reads. Strings come as a Buffer, the rest as numbers, null and arrays.
   *
   * @throws SinkUnreachableError, SinkDeniedError, SinkFaultError
   */
  read(command: string, ...values: (string | Buffer)[]): Promise<unknown>;
}

/** Every server of one Redis. */
export interface RedisReaders extends RedisReader {
  /** Once anything was answered: those that take writes. One, unless it is a cluster. */
  readonly servers: RedisReader[];
  close(): Promise<void>;
}

const TIMEOUT_MS = 5_000;

/** @throws OptionError when an option cannot be used */
export function openRedisReaders(options: RedisSinkOptions): RedisReaders {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const clock = options.clock ?? systemClock;
  const { url, password, tls, sentinelPassword, natMap } = options;
  const connection = new RedisConnection({
    ...{ url, password, tls, sentinelPassword, natMap },
    connectTimeoutMs: options.connectTimeoutMs ?? timeoutMs,
    replyTimeoutMs: options.replyTimeoutMs ?? timeoutMs,
    name: options.name ?? "fencekeeper-doctor",
    clock,
  });
  const readerAt = ({ place, key: at }: { place: string; key?: string }): RedisReader => ({
    place,
    read(command, ...values) {
      const request = () => (at === undefined ? { command, values } : { command, values, at });
      const question = { request, writes: false, answerOf: (reply: unknown) => reply };
      const limits = { deadline: Deadline.after(timeoutMs, clock), signal: undefined };
      return ask(connection, question, limits);
    },
  });
  return {
    ...readerAt({ place: connection.place }),
    get servers() {
      return connection.servers.map(readerAt);
    },
    close: () => connection.close(),
  };
}

/** The text of a reply that is one. */
export function textOf(reply: unknown): string {
  return Buffer.isBuffer(reply) ? reply.toString("utf8") : String(reply ?? "");
}

/** The texts of a reply that is an array of them. */
export function textsOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(textOf) : [];
}
