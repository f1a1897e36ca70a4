/** Which Redis addresses are understood; an address that is not is refused without being shown. */
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { parseRedisUrl } from "../../lib/redis/redis-url.js";

const plain = {
  ...{ username: undefined, password: undefined, database: 0, tls: false },
  ...{ isCluster: false, primaryName: undefined },
};
const at = (host: string, port: number) => ({ hosts: [{ host, port }] });

it.each([
  ["redis://cache", { ...plain, ...at("cache", 6379) }],
  ["redis://cache:7000/", { ...plain, ...at("cache", 7000) }],
  ["rediss://cache/3", { ...plain, ...at("cache", 6379), database: 3, tls: true }],
  ["redis://[::1]:7000", { ...plain, ...at("::1", 7000) }],
  ["redis://:pa%2Fss@cache", { ...plain, ...at("cache", 6379), password: "pa/ss" }],
  [
    "redis://worker:s%40cret@cache",
    { ...plain, ...at("cache", 6379), username: "worker", password: "s@cret" },
  ],
  [
    "redis-sentinel://worker:p%40:w@s1,s2:7001/3#main",
    {
      ...plain,
      hosts: [
        { host: "s1", port: 26379 },
        { host: "s2", port: 7001 },
      ],
      ...{ primaryName: "main", username: "worker", password: "p@:w", database: 3 },
    },
  ],
  [
    "rediss-cluster://:secret@[::1]:7000,n2",
    {
      ...plain,
      hosts: [
        { host: "::1", port: 7000 },
        { host: "n2", port: 6379 },
      ],
      ...{ isCluster: true, tls: true, password: "secret" },
    },
  ],
])("the address %s is understood", (url, address) => {
  expect(parseRedisUrl(url)).toEqual(address);
});

it.each([
  "",
  "cache:6379",
  "http://:hunter2@cache",
  "redis://",
  "redis://:hunter2@",
  "redis://hunter2@cache",
  "redis://:hunter2@cache/one",
  "redis://:hunter2@cache/0/1",
  "redis://:hunter2@cache:port",
  "redis://:hunter2%@cache",
  "redis://:hunter2@cache?enableOfflineQueue=true",
  "redis://:hunter2@cache#0",
  "redis-sentinel://:hunter2@cache",
  "redis-sentinel://:hunter2@cache:port#main",
  "redis-sentinel://:hunter2@#main",
  "redis-cluster://:hunter2@cache/1",
  "redis-cluster://:hunter2@a,,b",
  "redis-cluster://hunter2@cache",
  "redis-ring://:hunter2@cache",
])("the address %j is refused, and no part of it is shown", (url) => {
  const open = () => openRedisSink({ url });
  expect(open).toThrow(OptionError);
  try {
    open();
  } catch (error) {
    expect(inspect(error)).not.toContain("hunter2");
  }
});

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])(
  "a timeout of %s ms is refused",
  (ms) => {
    const url = "redis://cache";
    expect(() => openRedisSink({ url, timeoutMs: ms })).toThrow(OptionError);
    expect(() => openRedisSink({ url, connectTimeoutMs: ms })).toThrow(OptionError);
    expect(() => openRedisSink({ url, replyTimeoutMs: ms })).toThrow(OptionError);
  },
);

it("a connection name with a space is refused", () => {
  expect(() => openRedisSink({ url: "redis://cache", name: "a b" })).toThrow(OptionError);
});
