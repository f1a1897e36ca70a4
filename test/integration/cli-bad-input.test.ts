/**
 * Goal: bad input gets a clear error with its own exit code, and nothing is written.
 */
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, inject, it } from "vitest";
import { cli } from "../support/cli.js";
import { rawRedis } from "../support/raw-redis.js";
import { contendersOf } from "../support/raw-zookeeper.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

let job: string;
let key: string;

beforeEach(() => {
  const id = randomUUID();
  job = `job-${id}`;
  key = `key-${id}`;
});

const TOKEN = "00000.00000000004294967298.0000000042";

describe("wrong usage ends with 64 and a message that says what to do", () => {
  it.each<[string[], RegExp]>([
    [[], /Usage: fencekeeper/],
    [["nonsense"], /unknown command/],
    [["run"], /missing required argument/],
    [["run", "j"], /which command/],
    [["run", "j", "--"], /which command/],
    [["run", "--no-such-flag", "j", "--", "true"], /unknown option/],
    [["run", "", "--", "true"], /must not be empty/],
    [["run", "x".repeat(513), "--", "true"], /at most 512 bytes/],
    [["run", "j", "--wait", "5", "--", "true"], /--wait takes a duration/],
    [["run", "j", "--wait", "-5s", "--", "true"], /--wait|unknown option/],
    [["run", "j", "--max-bytes", "5", "--key", "k", "--", "true"], /--max-bytes takes a size/],
    [["run", "j", "--once", "--", "true"], /--key/],
    [["run", "j", "--ttl", "5s", "--", "true"], /--key/],
    [["run", "j", "--max-age", "5s", "--", "true"], /--key/],
    [["run", "j", "--key", "", "--", "true"], /key/],
    [["run", "j", "--key", "a}b", "--", "true"], /key/],
    [["run", "j", "--era", "-1", "--", "true"], /--era/],
    [["run", "j", "--era", "100000", "--", "true"], /--era/],
    [["run", "j", "--root", "relative", "--", "true"], /root/],
    [["run", "j", "--zookeeper", "host:port", "--", "true"], /ZooKeeper address/],
    [["run", "j", "--key", "k", "--redis", "http://x", "--", "true"], /[Rr]edis/],
    [["commit"], /required option/],
    [["commit", "--key", "k"], /which token/],
    [["commit", "--key", "k", "--token", "42"], /is not a fencing token/],
    [["get"], /missing required argument/],
    [["get", ""], /key/],
    [["status", "--key", "k"], /goes with one JOB/],
    [["demo", "--input", "/no/such/folder"], /--input takes a folder/],
  ])("fencekeeper %j", async (args, message) => {
    const end = await cli(args, { env: { FENCEKEEPER_TOKEN: undefined } });
    expect(end.stderr).toMatch(message);
    expect(end.status).toBe(64);
    expect(end.stdout.toString()).toBe("");
  });

  it("without an address, naming flag and variable", async () => {
    const end = await cli(["run", job, "--", "true"], { env: { ZOOKEEPER_CONNECT: undefined } });
    expect(end.status).toBe(64);
    expect(end.stderr).toMatch(/--zookeeper.*ZOOKEEPER_CONNECT/);
    const get = await cli(["get", key], { env: { REDIS_URL: undefined } });
    expect(get.status).toBe(64);
    expect(get.stderr).toMatch(/--redis.*REDIS_URL/);
  });
});

describe("a server that does not answer ends with 69 in the stated time", () => {
  const short = ["--connect-timeout", "1s"];

  it.each([
    ["a closed port", "127.0.0.1:1"],
    ["a host name that does not resolve", "no-such-host.invalid:2181"],
  ])("ZooKeeper at %s", async (_what, address) => {
    const end = await cli(["run", job, ...short, "--", "true"], {
      env: { ZOOKEEPER_CONNECT: address },
    });
    expect(end.status).toBe(69);
    expect(end.stderr).toContain(address.split(":")[0]);
  });

  it("ZooKeeper that takes connections and never answers", async () => {
    const proxy = await ZooKeeperProxy.start(Number(inject("zookeeper").split(":")[1]));
    proxy.stall();
    const end = await cli(["run", job, ...short, "--", "true"], {
      env: { ZOOKEEPER_CONNECT: proxy.connect },
    });
    expect(end.status).toBe(69);
    await proxy.close();
  });

  it("Redis at a closed port; the command does not run and no contender is left", async () => {
    const end = await cli(["run", job, ...short, "--key", key, "--", "echo", "ran"], {
      env: { REDIS_URL: "redis://127.0.0.1:1" },
    });
    expect(end.status).toBe(69);
    expect(end.stdout.toString()).toBe("");
    expect(await contendersOf(job)).toEqual([]);
  });
});

describe("what is there already and cannot be used", () => {
  it("a result key that holds a list ends with 65 before the command runs", async () => {
    await rawRedis("RPUSH", key, "element");
    const end = await cli(["run", job, "--key", key, "--", "echo", "ran"]);
    expect(end.status).toBe(65);
    expect(end.stderr).toContain("list");
    expect(end.stdout.toString()).toBe("");
  });

  it("a corrupt fence ends with 65 and is named", async () => {
    await rawRedis("SET", `fence:{${key}}`, "nonsense");
    const end = await cli(["commit", "--key", key, "--token", TOKEN], { input: "x" });
    expect(end.status).toBe(65);
    expect(end.stderr).toContain("fence");
  });

  it("a chroot that does not exist ends with 78 and is named", async () => {
    const end = await cli(["run", job, "--", "true"], {
      env: { ZOOKEEPER_CONNECT: `${inject("zookeeper")}/no/such/chroot` },
    });
    expect(end.status).toBe(78);
    expect(end.stderr).toContain("/no/such/chroot");
  });

  it("a password that Redis refuses ends with 77 and is not shown", async () => {
    const url = new URL(inject("redis"));
    url.username = "nobody";
    url.password = "open-sesame";
    const end = await cli(["get", key], { env: { REDIS_URL: url.href } });
    expect(end.status).toBe(77);
    expect(end.stderr).not.toContain("open-sesame");
  });

  it("another result under the same token ends with 65", async () => {
    const commit = (input: string) => cli(["commit", "--key", key, "--token", TOKEN], { input });
    expect((await commit("one")).status).toBe(0);
    expect((await commit("one")).status).toBe(0);
    expect((await commit("two")).status).toBe(65);
    expect((await cli(["get", key])).stdout.toString()).toBe("one");
  });
});

describe("job ids that look dangerous", () => {
  it.each(["..", "a/b", "{x}", "zookeeper", "😀", " ", "-"])("%j runs as any other", async (id) => {
    const end = await cli(["run", `${id}`, "--wait", "30s", "--", "printenv", "FENCEKEEPER_JOB"]);
    expect(end.stderr).not.toMatch(/error/);
    expect(end.stdout.toString()).toBe(`${id}\n`);
    expect(end.status).toBe(0);
  });
});
