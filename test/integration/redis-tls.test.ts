/**
 * Redis under TLS with certificates of one's own. Goal: a server or a worker that cannot prove who it is is refused at
 * once, with the reason; and no password need be where others can read it. Method: real servers with a secure port.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { OptionError, SinkTlsError, SinkUnreachableError } from "../../lib/errors.js";
import { openRedisSink, type RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import type { Sink } from "../../lib/sink.js";
import { isTlsFault } from "../../lib/tls/tls-fault.js";
import { makeToken } from "../../lib/token.js";
import { exitStatusOf } from "../../recipes/cli/exit.js";
import { diagnose } from "../../recipes/doctor/diagnose.js";
import { Authority, type Certificate } from "../support/certificates.js";
import { cli, MAIN } from "../support/cli.js";
import { rawRedisAt } from "../support/raw-redis.js";
import { freePort, startRedis, type TestRedis } from "../support/redis-for-test.js";

interface Secure {
  server: TestRedis;
  port: number;
}

const PASSWORD = "c0rrect-h0rse";
/** Longer than any test may take: who is refused is not to wait for it. */
const LONG_MS = 60_000;

let authority: Authority;
let stranger: Authority;
let own: Certificate;
let worker: Certificate;
let ca: string;
let open: Secure;
let mutual: Secure;
let key = "";

/** A server with a secure port; its other one is for the test itself. */
async function startSecure(
  certificate: Certificate,
  { clients = "no", args = [] as string[] } = {},
): Promise<Secure> {
  const port = await freePort();
  const files = {
    "--tls-port": String(port),
    "--tls-cert-file": certificate.certFile,
    "--tls-key-file": certificate.keyFile,
    "--tls-ca-cert-file": authority.caFile,
    "--tls-auth-clients": clients,
  };
  const server = await startRedis({
    source: "programs",
    args: [...Object.entries(files).flat(), ...args],
  });
  return { server, port };
}

beforeAll(async () => {
  [authority, stranger] = await Promise.all([Authority.make(), Authority.make()]);
  ca = await authority.ca();
  own = await authority.sign("localhost");
  worker = await authority.sign("worker");
  open = await startSecure(own);
  mutual = await startSecure(own, { clients: "yes" });
  await rawRedisAt(open.server.url, "CONFIG", "SET", "requirepass", PASSWORD);
});

afterAll(async () => {
  await Promise.all([open, mutual].map((each) => each?.server.stop()));
  await Promise.all([authority, stranger].map((each) => each?.[Symbol.asyncDispose]()));
});

beforeEach(() => {
  key = `key-${randomUUID()}`;
});

function openSink(port: number, options: Partial<RedisSinkOptions> = {}): Sink {
  const url = `rediss://localhost:${port}`;
  const password = port === open.port ? PASSWORD : undefined;
  const sink = openRedisSink({ url, password, timeoutMs: LONG_MS, tls: { ca }, ...options });
  onTestFinished(() => sink.close());
  return sink;
}

const commit = (sink: Sink) =>
  sink.commitResult({
    ...{ key, job: "job", value: "value" },
    token: makeToken({ era: 0, generation: 7n, sequence: 1 }),
  });

/** The error of a sink that is refused, which has to come long before its deadline. */
async function refusalOf(sink: Sink): Promise<SinkTlsError> {
  const error = await commit(sink).catch((fault: unknown) => fault);
  expect(error).toBeInstanceOf(SinkTlsError);
  const refusal = error as SinkTlsError;
  expect([refusal.definite, exitStatusOf(refusal)]).toEqual([true, 78]);
  expect(refusal.message).toMatch(/^no TLS connection to Redis at \S+ can be made \(.*\): check/);
  return refusal;
}

describe("a sink under TLS", () => {
  it("commits and reads as any other where it trusts the server's authority", async () => {
    const sink = openSink(open.port);
    expect(await commit(sink)).toEqual({ outcome: "committed", revision: 1 });
    expect((await sink.readResult(key)).value?.toString()).toBe("value");
  });

  it("refuses a server at once that another authority has signed for", async () => {
    for (const tls of [undefined, { ca: await stranger.ca() }]) {
      expect((await refusalOf(openSink(open.port, { tls }))).message).toContain("certificate");
    }
  });

  it("refuses a server of another name, unless that name is expected", async () => {
    const url = `rediss://127.0.0.1:${open.port}`;
    expect((await refusalOf(openSink(open.port, { url }))).message).toContain("IP: 127.0.0.1");
    const sink = openSink(open.port, { url, tls: { ca, servername: "localhost" } });
    expect(await commit(sink)).toMatchObject({ outcome: "committed" });
  });

  it("refuses a certificate that has expired, and says so", async () => {
    const { server, port } = await startSecure(await authority.sign("localhost", -1));
    onTestFinished(() => server.stop());
    expect((await refusalOf(openSink(port))).message).toContain("certificate has expired");
  });

  it("shows its own certificate where the server wants one, and is refused without", async () => {
    const { cert, key: ownKey } = worker;
    const sink = openSink(mutual.port, { tls: { ca, cert, key: ownKey } });
    expect(await commit(sink)).toMatchObject({ outcome: "committed" });
    expect((await refusalOf(openSink(mutual.port))).message).toContain("certificate required");
    const foreign = await stranger.sign("worker");
    const tls = { ca, cert: foreign.cert, key: foreign.key };
    expect((await refusalOf(openSink(mutual.port, { tls }))).message).toMatch(/unknown ca/i);
  });

  it("is refused with the reason in a cluster, and where sentinels are asked", async () => {
    for (const url of ["rediss-cluster://localhost", "rediss-sentinel://localhost"]) {
      const name = url.includes("sentinel") ? "#primary" : "";
      const sink = openSink(open.port, { url: `${url}:${open.port}${name}`, tls: undefined });
      expect((await refusalOf(sink)).message).toContain("certificate");
    }
  });

  it("waits for a server that is down, and asks whether one that is silent speaks TLS", async () => {
    for (const port of [await freePort(), open.server.port]) {
      const error = await commit(openSink(port, { timeoutMs: 300 })).catch((fault) => fault);
      expect(error).toBeInstanceOf(SinkUnreachableError);
      if (port === open.server.port) expect(error.message).toContain("speak TLS");
    }
  });
});

describe("a fault of a TLS socket", () => {
  it("is the network's where none of a host's addresses can be connected to", () => {
    const refused = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
    expect(isTlsFault(refused)).toBe(false);
    expect(isTlsFault(Object.assign(new Error(), { code: "CERT_HAS_EXPIRED" }))).toBe(true);
  });
});

describe("what a sink is given", () => {
  it("is checked before anything is opened", () => {
    const secure = "rediss://localhost:1";
    const bad: RedisSinkOptions[] = [
      { url: secure, tls: { ca: "no pem" } },
      { url: secure, tls: { cert: worker.cert } },
      { url: secure, tls: { cert: worker.cert, key: own.key } },
      { url: "redis://localhost:1", tls: { ca } },
      { url: "redis://:one@localhost:1", password: "another" },
      { url: "redis://user@localhost:1" },
      { url: "redis://user@localhost:1", password: "" },
    ];
    for (const options of bad) expect(() => openRedisSink(options)).toThrow(OptionError);
  });
});

describe("the command line under TLS", () => {
  /** The address without its password, and no other server's. */
  const at = ({ port }: Secure, env: Record<string, string> = {}) => ({
    env: { REDIS_URL: `rediss://localhost:${port}`, ...env },
  });
  const token = makeToken({ era: 0, generation: 7n, sequence: 1 }).text;
  const commitArgs = () => ["commit", "--key", key, "--token", token];

  async function passwordFile(text: string): Promise<string> {
    const file = join(authority.folder, randomUUID());
    await writeFile(file, text);
    return file;
  }

  it("takes the authority and the password as files, or from the environment", async () => {
    const file = await passwordFile(`${PASSWORD}\n`);
    const flags = ["--redis-ca", authority.caFile, "--redis-password-file", file];
    const put = await cli([...commitArgs(), ...flags], { ...at(open), input: "value" });
    expect(put).toMatchObject({ status: 0 });
    const env = { REDIS_CA: authority.caFile, REDIS_PASSWORD: PASSWORD };
    const got = await cli(["get", key], at(open, env));
    expect([got.status, got.stdout.toString()]).toEqual([0, "value"]);
  });

  it("takes our certificate and its key as files", async () => {
    const flags = ["--redis-ca", authority.caFile, "--redis-cert", worker.certFile];
    const args = [...commitArgs(), ...flags, "--redis-key", worker.keyFile];
    expect(await cli(args, { ...at(mutual), input: "value" })).toMatchObject({ status: 0 });
    const env = { REDIS_CA: authority.caFile };
    const refused = await cli(["get", key], at(mutual, env));
    expect(refused.status).toBe(78);
    expect(refused.stderr).toContain("certificate required");
  });

  it("ends with 78 for a wrong authority, 77 for a wrong password and 64 for a file that is none", async () => {
    const wrong = await stranger.ca().then(passwordFile);
    const ends = await Promise.all([
      cli(["get", key, "--redis-ca", wrong], at(open)),
      cli(["get", key, "--redis-ca", authority.caFile], at(open, { REDIS_PASSWORD: "wrong" })),
      cli(["get", key, "--redis-ca", `${wrong}.none`], at(open)),
      cli(["get", key, "--redis-password-file", await passwordFile("\n")], at(open)),
    ]);
    expect(ends.map(({ status }) => status)).toEqual([78, 77, 64, 64]);
  });

  it("leaves out the password of the environment where the address has its own", async () => {
    const url = `rediss://:${PASSWORD}@localhost:${open.port}`;
    const env = { REDIS_URL: url, REDIS_CA: authority.caFile, REDIS_PASSWORD: "of another" };
    expect((await cli(["get", key], { env })).status).toBe(1);
  });

  it("hands all of it on to the command that it runs, whatever folder that works in", async () => {
    const file = await passwordFile(PASSWORD);
    const script = `cd / && echo inner | "$0" "$1" commit --key ${key} && ps -o args= -p $PPID`;
    const names = ["ca.pem", file.slice(authority.folder.length + 1)];
    const flags = ["--redis-ca", `${names[0]}`, "--redis-password-file", `${names[1]}`];
    const command = ["sh", "-c", script, process.execPath, MAIN];
    const end = await cli(["run", key, ...flags, "--", ...command], {
      ...at(open),
      cwd: authority.folder,
    });
    expect(end.stderr).toContain("committed at");
    expect(end.status).toBe(0);
    expect(end.stdout.toString()).not.toContain(PASSWORD);
    const env = { REDIS_CA: authority.caFile, REDIS_PASSWORD: PASSWORD };
    expect((await cli(["get", key], at(open, env))).stdout.toString()).toBe("inner\n");
  });

  it("uses them in status and in the doctor too", async () => {
    const env = { REDIS_CA: authority.caFile, REDIS_PASSWORD: PASSWORD };
    const [stale, status, doctor] = await Promise.all([
      cli(["status", "--stale"], at(open, env)),
      cli(["status", key], at(open, env)),
      cli(["doctor", "--json"], at(open, env)),
    ]);
    expect(stale).toMatchObject({ status: 0 });
    expect(stale?.stdout.toString()).toBe("no write was refused\n");
    expect(status).toMatchObject({ status: 0 });
    const { findings } = JSON.parse(doctor?.stdout.toString() ?? "") as {
      findings: { about: string; check: string; level: string }[];
    };
    const reached = findings.find(({ about, check }) => `${about} ${check}` === "redis reachable");
    expect(reached?.level).toBe("well");
  });

  it("has a doctor that says what is wrong with the certificates", async () => {
    const [found] = await diagnose({ redis: { url: `rediss://localhost:${open.port}` } });
    expect(found).toMatchObject({ check: "reachable", level: "broken" });
    expect(found?.fix).toContain("certificates");
  });
});
