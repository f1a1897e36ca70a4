/**
 * Goal: sessions under TLS are as good as plain ones, and a server that cannot prove who it is gets a named error.
 * Method: real servers with a secure port of Netty's and certificates of the test's own; programs of this machine,
 * because the port and the files belong to it.
 */
import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { connect as dial } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { OptionError, ZooKeeperTlsError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { type Claim, claim } from "../../recipes/claim.js";
import { ZooKeeper, type ZooKeeperOptions } from "../../recipes/index.js";
import { freePort } from "../../recipes/servers/free-port.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { Authority, type Certificate } from "../support/certificates.js";
import { cli } from "../support/cli.js";
import { Program } from "../support/program.js";

const WAIT = { timeout: 30_000, interval: 20 };

interface Secure {
  server: ZooKeeperServer;
  port: number;
}

let authority: Authority;
let stranger: Authority;
let certificate: Certificate;
let secure: Secure;
let job: string;
const opened: ZooKeeper[] = [];

/** A server with a secure port, which wants a certificate of its clients or not. */
async function startSecure(clientAuth: "none" | "need"): Promise<Secure> {
  const port = await freePort();
  const config = {
    serverCnxnFactory: "org.apache.zookeeper.server.NettyServerCnxnFactory",
    secureClientPort: String(port),
    secureClientPortAddress: "127.0.0.1",
    "ssl.clientAuth": clientAuth,
    "ssl.keyStore.location": certificate.file,
    "ssl.trustStore.location": authority.caFile,
  };
  return { server: await startZooKeeper({ source: "programs", zookeeper: { config } }), port };
}

beforeAll(async () => {
  authority = await Authority.make();
  stranger = await Authority.make();
  certificate = await authority.sign("localhost");
  secure = await startSecure("none");
});
afterAll(async () => {
  await secure?.server.stop();
  await Promise.all([authority, stranger].map((each) => each?.[Symbol.asyncDispose]()));
});

beforeEach(() => {
  job = `job-${randomUUID()}`;
});
afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

async function open(
  options: Partial<ZooKeeperOptions> = {},
  port = secure.port,
): Promise<ZooKeeper> {
  const zookeeper = new ZooKeeper({
    ...{ connect: `localhost:${port}`, sessionTimeoutMs: 6_000, connectTimeoutMs: 10_000 },
    tls: { ca: await authority.ca() },
    ...options,
  });
  opened.push(zookeeper);
  return zookeeper;
}

async function granted(zookeeper: ZooKeeper, waitMs = 0): Promise<Claim> {
  const answer = await claim({ zookeeper, job, waitMs, answerMs: 20_000 });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

describe("a session under TLS", () => {
  it("claims, waits and releases as any other", async () => {
    const first = await granted(await open());
    const next = granted(await open(), 30_000);
    expect(await first.release()).toBe("released");
    expect((await next).token.sequence).toBe(1);
  });

  it("lives through a restart of the server", async () => {
    const zookeeper = await open({ sessionTimeoutMs: 20_000 });
    const held = await granted(zookeeper);
    await secure.server.restart();
    expect(await held.release()).toBe("released");
    expect(await (await granted(zookeeper)).release()).toBe("released");
  });

  it("is over in bounded time where the server is frozen, and so is closing it", async () => {
    const zookeeper = await open();
    const held = await granted(zookeeper);
    await secure.server.pause();
    try {
      await vi.waitFor(() => expect(held.signal.aborted).toBe(true), WAIT);
      const closedWithin = Deadline.after(10_000, systemClock);
      expect(await settleWithin(zookeeper.close(), closedWithin)).not.toBe(TIMED_OUT);
    } finally {
      await secure.server.resume();
    }
  });

  it("lives on the caller's thread too", async () => {
    const program = new Program(
      `const [connect2, ca, job] = args;
       const zookeeper = new ZooKeeper({ connect: connect2, thread: "caller", tls: { ca } });
       const { claim: held } = await claim({ zookeeper, job });
       tell({ released: await held.release() });
       await zookeeper.close();
       process.stdin.destroy();`,
      ...[`localhost:${secure.port}`, await authority.ca(), job],
    );
    expect(await program.ended).toEqual({ status: 0, signal: null });
    expect(program.lines).toEqual([{ released: "released" }]);
  });

  it("is kept by a process whose main thread is busy for two session timeouts", async () => {
    const program = new Program(
      `const [connect2, ca, job] = args;
       const zookeeper = new ZooKeeper({ connect: connect2, sessionTimeoutMs: 4_000, tls: { ca } });
       const { claim: held } = await claim({ zookeeper, job });
       const until = performance.now() + 8_000;
       while (performance.now() < until);
       await new Promise((resolve) => setImmediate(resolve));
       tell({ aborted: held.signal.aborted, released: await held.release() });
       await zookeeper.close();
       process.stdin.destroy();`,
      ...[`localhost:${secure.port}`, await authority.ca(), job],
    );
    await program.ended;
    expect(program.lines).toEqual([{ aborted: false, released: "released" }]);
  });

  it("is closed at once with its process, so that the next one need not wait for it to expire", async () => {
    const program = new Program(
      `const [connect2, ca, job] = args;
       const zookeeper = new ZooKeeper({ connect: connect2, sessionTimeoutMs: 30_000, tls: { ca } });
       await claim({ zookeeper, job });
       process.exit(3);`,
      ...[`localhost:${secure.port}`, await authority.ca(), job],
    );
    expect(await program.ended).toEqual({ status: 3, signal: null });
    await granted(await open(), 10_000);
  });

  it.skipIf(process.platform !== "linux")(
    "is refused to other processes that find its port on this machine",
    async () => {
      const program = new Program(
        `const [connect2, ca, job] = args;
       const zookeeper = new ZooKeeper({ connect: connect2, tls: { ca } });
       await claim({ zookeeper, job });
       const { readdirSync, readFileSync, readlinkSync } = await import("node:fs");
       const own = readdirSync("/proc/self/fd").map((fd) => {
         try {
           return readlinkSync("/proc/self/fd/" + fd);
         } catch {
           return ""; // closed meanwhile
         }
       });
       const ports = readFileSync("/proc/net/tcp", "latin1").split("\\n").map((line) => line.trim().split(/\\s+/))
         .filter((row) => row[3] === "0A" && own.includes("socket:[" + row[9] + "]"))
         .map((row) => parseInt(row[1].split(":")[1], 16));
       tell(ports);
       process.stdin.once("data", () => process.exit(0));`,
        ...[`localhost:${secure.port}`, await authority.ca(), job],
      );
      const [ports] = (await program.toldLines(1)) as [number[]];
      expect(ports).toHaveLength(1);
      const ended = new Promise<string>((resolve) => {
        const socket = dial(ports[0] ?? 0, "127.0.0.1", () => socket.write("ruok"));
        let said = "";
        socket.on("data", (data) => {
          said += data;
        });
        socket.on("error", () => {}); // "close" follows
        socket.on("close", () => resolve(said));
      });
      expect(await ended).toBe("");
      program.child.stdin?.write("end\n");
      expect(await program.ended).toMatchObject({ status: 0 });
    },
  );
});

describe("a server that cannot prove who it is", () => {
  it("is refused with a named error where another authority has signed for it", async () => {
    const told: string[] = [];
    const zookeeper = await open({
      tls: { ca: await stranger.ca() },
      connectTimeoutMs: 60_000,
      warn: (message) => told.push(message),
    });
    const refused = await granted(zookeeper, 60_000).catch((error) => error);
    expect(refused).toBeInstanceOf(ZooKeeperTlsError);
    expect(refused.message).toMatch(/localhost:\d+: .*certificate.*check that the ca/);
    expect(told).toHaveLength(1);
  });

  it("is refused where its certificate has another name, unless that name is expected", async () => {
    const connect = `127.0.0.1:${secure.port}`;
    await expect(granted(await open({ connect }))).rejects.toThrow(/IP: 127.0.0.1/);
    const tls = { ca: await authority.ca(), servername: "localhost" };
    await (await granted(await open({ connect, tls }))).release();
  });

  it("does not hide one that can", async () => {
    const connect = `127.0.0.1:${secure.port},localhost:${secure.port}`;
    await (await granted(await open({ connect }))).release();
  });

  it("is refused also where the environment says that anything goes", async () => {
    const program = new Program(
      `process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
       const [connect2, ca, job] = args;
       const zookeeper = new ZooKeeper({ connect: connect2, tls: { ca } });
       await claim({ zookeeper, job }).catch((error) => tell(error.code));
       await zookeeper.close();
       process.exit(0);`,
      ...[`localhost:${secure.port}`, await stranger.ca(), job],
    );
    await program.ended;
    expect(program.lines).toEqual(["ZOOKEEPER_TLS"]);
  });

  it("is unreachable, with the reason, where it does not speak TLS at all", async () => {
    const zookeeper = await open({ connectTimeoutMs: 3_000 }, secure.server.port);
    const failed = await granted(zookeeper).catch((error) => error);
    expect(failed).toBeInstanceOf(ZooKeeperUnreachableError);
    expect(failed.message).toMatch(new RegExp(`:${secure.server.port}: .*TLS`));
  });
});

describe("a server that wants to know who we are", () => {
  it("takes our certificate, and is told apart from one that is down where we have none", async () => {
    const { server, port } = await startSecure("need");
    try {
      const { cert, key } = await authority.sign("worker");
      const ca = await authority.ca();
      await (await granted(await open({ tls: { ca, cert, key } }, port))).release();
      const failed = await granted(await open({ connectTimeoutMs: 3_000 }, port)).catch((e) => e);
      expect(failed).toBeInstanceOf(ZooKeeperTlsError);
      expect(failed.message).toMatch(/^[^\n]*alert bad certificate[^\n]*$/);
    } finally {
      await server.stop();
    }
  });
});

describe("the command line under TLS", () => {
  const folder = join(tmpdir(), `fencekeeper-tls-${randomUUID()}`);
  const run = (ca: string) =>
    cli(["run", job, "--zookeeper-ca", ca, "--", "echo", "ran"], {
      env: { ZOOKEEPER_CONNECT: `localhost:${secure.port}` },
    });
  afterAll(() => rm(folder, { force: true }));

  it("takes the authority as a file, and ends with 78 for a wrong one", async () => {
    expect(await run(authority.caFile)).toMatchObject({ status: 0, stdout: Buffer.from("ran\n") });
    const wrong = await run(stranger.caFile);
    expect(wrong).toMatchObject({ status: 78, stdout: Buffer.from("") });
    expect(wrong.stderr).toContain("certificate");
  });

  it("ends with 64 for a file that is none", async () => {
    expect((await run(`${folder}.none`)).status).toBe(64);
    await writeFile(folder, "no certificate");
    expect((await run(folder)).stderr).toContain("PEM");
  });
});

describe("what TLS is given", () => {
  it("is checked at once, and not shown", async () => {
    const { cert, key } = certificate;
    const ca = await authority.ca();
    const connect = "localhost:1";
    const bad = [
      { ca: "no pem" },
      { cert },
      { key },
      { cert, key: "no key" },
      { servername: "127.0.0.1" },
    ];
    for (const tls of bad) expect(() => new ZooKeeper({ connect, tls })).toThrow(OptionError);
    const lax = { ca, rejectUnauthorized: false } as unknown as { ca: string };
    expect(() => new ZooKeeper({ connect, tls: lax })).toThrow(OptionError);
    const { key: other } = await stranger.sign("other");
    expect(() => new ZooKeeper({ connect, tls: { cert, key: other } })).toThrow(/fits/);
    const zookeeper = new ZooKeeper({ connect, tls: { ca, cert, key } });
    expect(inspect(zookeeper, { depth: 9, showHidden: true })).not.toContain("PRIVATE KEY");
    await vi.waitFor(() => zookeeper.close(), WAIT);
  });
});
