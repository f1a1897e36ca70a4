/**
 * Goal: a ZooKeeper that is frozen, forbids us or dies gives a clear error in bounded time and loses nothing.
 * Method: a server of our own that is stopped, continued, killed and restarted.
 */
import { randomUUID } from "node:crypto";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  vi,
} from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { ZooKeeperDeniedError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { compareTokens } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, claim } from "../../recipes/claim.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { cli } from "../support/cli.js";
import { childrenOf, withSession } from "../support/raw-zookeeper.js";
import { makeReadOnly } from "../support/zookeeper-acl.js";

const WAIT = { timeout: 30_000, interval: 20 };

let server: ZooKeeperServer;
let zookeeper: ZooKeeper;
let job: string;

beforeAll(async () => {
  server = await startZooKeeper();
});
afterAll(() => server?.stop());

beforeEach(() => {
  job = `job-${randomUUID()}`;
  zookeeper = open();
});
afterEach(() => zookeeper.close());

function open(connectTimeoutMs = 10_000): ZooKeeper {
  return new ZooKeeper({ connect: server.connect, sessionTimeoutMs: 4_000, connectTimeoutMs });
}

async function granted(): Promise<Claim> {
  const answer = await claim({ zookeeper, job, answerMs: 30_000 });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

describe("a frozen ZooKeeper server", () => {
  it("is unreachable for a new session within the connect timeout, and closing does not hang", async () => {
    await server.pause();
    try {
      const frozen = open(500);
      await expect(claim({ zookeeper: frozen, job })).rejects.toBeInstanceOf(
        ZooKeeperUnreachableError,
      );
      await frozen.close();
      const run = await cli(["run", job, "--connect-timeout", "1s", "--", "true"], {
        env: { ZOOKEEPER_CONNECT: server.connect },
      });
      expect(run.status).toBe(69);
    } finally {
      await server.resume();
    }
  });

  it("takes the claim from its holder by the local deadline, and no wait outlasts its own", async () => {
    const held = await granted();
    await server.pause();
    try {
      const waiting = claim({ zookeeper, job, waitMs: 100, answerMs: 500 });
      await expect(waiting).rejects.toBeInstanceOf(ZooKeeperUnreachableError);
      await vi.waitFor(() => expect(held.signal.aborted).toBe(true), WAIT);
      await expect(held.release({ timeoutMs: 100 })).resolves.toBe("lost");
      await zookeeper.close();
    } finally {
      await server.resume();
    }
  });
});

describe("the release of a claim", () => {
  it("is pending while the server is frozen, and happens when it is back", async () => {
    const held = await granted();
    await server.pause();
    try {
      await expect(held.release({ timeoutMs: 100 })).resolves.toBe("pending");
    } finally {
      await server.resume();
    }
    const later = open();
    const next = await claim({ zookeeper: later, job, waitMs: 30_000 });
    expect(next.outcome).toBe("granted");
    await later.close();
  });
});

describe("a ZooKeeper server that dies", () => {
  it("hands the job on when it is back, with a higher token and no contender left over", async () => {
    const held = await granted();
    await server.kill();
    await server.restart();
    // another client: where containers are used the server is back at another port, and the old one stays cut off
    const later = open();
    const next = claim({ zookeeper: later, job, waitMs: 60_000 });
    await held.release();
    const answer = await next;
    if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
    expect(compareTokens(answer.claim.token, held.token)).toBeGreaterThan(0);
    await answer.claim.release();
    const session = await later.session(Deadline.after(10_000, systemClock));
    await vi.waitFor(
      async () => expect(await childrenOf(session, claimPath(job))).toEqual([]),
      WAIT,
    );
    await later.close();
  });
});

describe("a ZooKeeper that forbids what is needed", () => {
  it("is told as denied with its path, and run ends with 77 before the command starts", async () => {
    const root = `/read-only-${job}`;
    await withSession((session) => session.create(root, "", "persistent"));
    await makeReadOnly(root);
    const run = await cli(["run", job, "--root", root, "--", "echo", "ran"]);
    expect(run.status).toBe(77);
    expect(run.stderr).toContain(root);
    expect(run.stdout.toString()).toBe("");
  });

  it("needs no right above the first znode that exists", async () => {
    const top = `/top-${job}`;
    await withSession((session) => session.create(top, "", "persistent"));
    await withSession((session) => session.create(`${top}/ours`, "", "persistent"));
    await makeReadOnly(top);
    const run = await cli(["run", job, "--root", `${top}/ours`, "--", "echo", "ran"]);
    expect(run.stderr).not.toContain("does not allow");
    expect(run.status).toBe(0);
  });

  it("has its error class from the library", async () => {
    const root = `/denied-${job}`;
    await withSession((session) => session.create(root, "", "persistent"));
    await makeReadOnly(root);
    const shared = new ZooKeeper({ connect: inject("zookeeper") });
    await expect(claim({ zookeeper: shared, job, root })).rejects.toBeInstanceOf(
      ZooKeeperDeniedError,
    );
    await shared.close();
  });
});
