/**
 * Goal: with a user and password, strangers can neither join a queue nor touch a contender, and a wrong user is told so
 * at once. Method: real claims, and a session without credentials that tries what a stranger would.
 */
import { createHash, randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { ConfigurationError, OptionError, ZooKeeperDeniedError } from "../../lib/errors.js";
import { RIGHTS } from "../../lib/zookeeper/access.js";
import { claimPath, claimsPath } from "../../lib/zookeeper/paths.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import { contenders, ZooKeeper, type ZooKeeperOptions } from "../../recipes/index.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { cli } from "../support/cli.js";
import { withSession } from "../support/raw-zookeeper.js";
import { aclOf } from "../support/zookeeper-acl.js";
import { ZooKeeperProxy } from "../support/zookeeper-proxy.js";

const USER = "worker";
const PASSWORD = "a pass:word ÿ";
const SECRET = `${USER}:${PASSWORD}`;
const auth = { scheme: "digest", user: USER, password: PASSWORD } as const;

const OURS = {
  perms: RIGHTS.all,
  scheme: "digest",
  auth: `${USER}:${createHash("sha1").update(SECRET).digest("base64")}`,
};
const EVERYBODY_READS = { perms: RIGHTS.read, scheme: "world", auth: "anyone" };
const OPEN = { perms: RIGHTS.all, scheme: "world", auth: "anyone" };

const opened: ZooKeeper[] = [];
let job: string;
let root: string;
let path: string;
let warnings: string[];

beforeEach(() => {
  job = `job-${randomUUID()}`;
  root = `/root-${job}`;
  path = claimPath(job, root);
  warnings = [];
});
afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

function open(options: Partial<ZooKeeperOptions> = {}): ZooKeeper {
  const zookeeper = new ZooKeeper({
    ...{ connect: inject("zookeeper"), sessionTimeoutMs: 6_000, connectTimeoutMs: 10_000 },
    ...options,
  });
  opened.push(zookeeper);
  return zookeeper;
}

const ours = (options: Partial<ZooKeeperOptions> = {}) => open({ auth, ...options });

async function granted(zookeeper: ZooKeeper, more: Partial<ClaimOptions> = {}): Promise<Claim> {
  const warn = (message: string) => warnings.push(message);
  const answer = await claim({ zookeeper, job, root, warn, answerMs: 20_000, ...more });
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

describe("a claim of somebody with a user and password", () => {
  it("has an access control list on everything that was made for it", async () => {
    const held = await granted(ours());
    for (const each of [root, claimsPath(root), path, held.path]) {
      expect(await aclOf(each, SECRET), each).toEqual([OURS, EVERYBODY_READS]);
    }
    await held.release();
    expect(warnings).toEqual([]);
  });

  it("can be seen by nobody else where it is private", async () => {
    const zookeeper = ours({ acl: "private" });
    const held = await granted(zookeeper);
    for (const each of [root, claimsPath(root), path, held.path]) {
      expect(await aclOf(each, SECRET), each).toEqual([OURS]);
    }
    await expect(contenders({ zookeeper: open(), job, root })).rejects.toBeInstanceOf(
      ZooKeeperDeniedError,
    );
    expect((await contenders({ zookeeper, job, root })).contenders).toHaveLength(1);
  });

  it("is safe from a stranger, who can look and do nothing else", async () => {
    const held = await granted(ours());
    await withSession(async (stranger) => {
      const denied = ZooKeeperDeniedError;
      const prefix = `${path}/_c_${randomUUID()}-lock-`;
      await expect(stranger.create(prefix, "", "ephemeralSequential")).rejects.toThrow(denied);
      await expect(stranger.delete(held.path)).rejects.toThrow(denied);
      for (const each of [root, claimsPath(root), path, held.path]) {
        const open = [{ rights: RIGHTS.all, scheme: "world", id: "anyone" }];
        await expect(stranger.setAcl(each, open, -1)).rejects.toThrow(denied);
      }
      await expect(stranger.create(`${claimsPath(root)}/x`, "", "persistent")).rejects.toThrow(
        denied,
      );
    });
    const seen = await contenders({ zookeeper: open(), job, root });
    expect(seen.contenders).toMatchObject([{ pid: process.pid }]);
    expect(held.signal.aborted).toBe(false);
    expect(await held.release()).toBe("released");
  });

  it("is passed on among those who have the same", async () => {
    const first = await granted(ours());
    const next = claim({ zookeeper: ours(), job, root, waitMs: 30_000 });
    await first.release();
    const answer = await next;
    expect(answer).toMatchObject({ outcome: "granted", claim: { token: { sequence: 1 } } });
  });

  it("proves who it is again with each connection, and with the session after a lost one", async () => {
    const proxy = await ZooKeeperProxy.start(Number(inject("zookeeper").split(":")[1]));
    onTestFinished(() => proxy.close());
    const zookeeper = ours({ connect: proxy.connect });
    const held = await granted(zookeeper);
    proxy.cut();
    expect(await held.release()).toBe("released");
    expect(proxy.requests.filter((each) => each === "auth")).toHaveLength(2);
    const session = await zookeeper.session(Deadline.after(10_000, systemClock));
    session.giveUp();
    await (await granted(zookeeper)).release();
    expect(proxy.requests.filter((each) => each === "auth")).toHaveLength(3);
    expect(proxy.requests.indexOf("auth")).toBe(0);
  });

  it.each(["createContainer", "setAcl"])(
    "is protected also when the answer to a %s is lost",
    async (operation) => {
      const proxy = await ZooKeeperProxy.start(Number(inject("zookeeper").split(":")[1]));
      onTestFinished(() => proxy.close());
      const dropped = proxy.dropReplyOf(operation);
      const held = await granted(ours({ connect: proxy.connect }));
      await dropped;
      for (const each of [root, claimsPath(root), path, held.path]) {
        expect(await aclOf(each, SECRET), each).toEqual([OURS, EVERYBODY_READS]);
      }
    },
  );
});

describe("what somebody else has left", () => {
  /** What a maker leaves that dies between the two steps, with what a stranger has put into it. */
  async function leaveBare(...names: string[]): Promise<void> {
    const zookeeper = ours();
    await (await granted(zookeeper, { job: "earlier" })).release();
    const session = await zookeeper.session(Deadline.after(10_000, systemClock));
    const { data } = await session.read(root);
    await session.create(path, data, "persistent");
    await withSession(async (stranger) => {
      for (const name of names) await stranger.create(`${path}/${name}`, "", "persistent");
    });
  }

  it("is protected by the next of us where its maker died on the way", async () => {
    await leaveBare();
    const held = await granted(ours());
    for (const each of [path, held.path]) {
      expect(await aclOf(each, SECRET), each).toEqual([OURS, EVERYBODY_READS]);
    }
    expect(warnings).toEqual([]);
  });

  it("is removed where a stranger came in before it was protected", async () => {
    await leaveBare(`_c_${randomUUID()}-lock-0000000000`);
    const held = await granted(ours());
    expect(warnings.join()).toMatch(/a stranger has made .*-lock-0000000000/);
    expect((await contenders({ zookeeper: open(), job, root })).contenders).toHaveLength(1);
    await held.release();
  });

  it("is named where it cannot be removed", async () => {
    await leaveBare("deep", "deep/er");
    const error = await granted(ours()).catch((error) => error);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.message).toContain(`${path}/deep`);
  });

  it("keeps its list where it was made without a user, and that is told", async () => {
    await (await granted(open())).release();
    const held = await granted(ours());
    expect(await aclOf(path, SECRET)).toEqual([OPEN]);
    expect(warnings.map((each) => each.split(" ")[0])).toEqual([claimsPath(root), path]);
    await held.release();
  });

  it("keeps its list where it is a lock path of the user's, made by us or not", async () => {
    const lockPath = `/locks-${job}`;
    await withSession((session) => session.create(lockPath, "", "persistent"));
    const held = await granted(ours(), { lockPath });
    expect(await aclOf(lockPath, SECRET)).toEqual([OPEN]);
    expect(await aclOf(held.path, SECRET)).toEqual([OPEN]);
    const other = await granted(ours(), { lockPath: `${lockPath}/of/${job}` });
    expect(await aclOf(`${lockPath}/of/${job}`, SECRET)).toEqual([OPEN]);
    await Promise.all([held.release(), other.release()]);
  });
});

describe("somebody without the rights", () => {
  it.each([
    ["no user", undefined],
    ["another user", { ...auth, user: "other" }],
    ["a wrong password", { ...auth, password: "wrong" }],
  ])("is denied at once: %s", async (_what, other) => {
    await (await granted(ours())).release();
    const zookeeper = open(other === undefined ? {} : { auth: other });
    const denied = await claim({ zookeeper, job, root, waitMs: 60_000 }).catch((error) => error);
    expect(denied).toBeInstanceOf(ZooKeeperDeniedError);
    expect(denied.message).toMatch(/getAcl.*user and password/);
    expect(inspect(denied)).not.toContain("wrong");
  });

  it("is told by the command line, which ends with 77 and starts nothing", async () => {
    const env = { ZOOKEEPER_AUTH: SECRET };
    const run = (more: Record<string, string>) =>
      cli(["run", job, "--root", root, "--wait", "1m", "--", "echo", "ran"], { env: more });
    expect(await run(env)).toMatchObject({ status: 0, stdout: Buffer.from("ran\n") });
    for (const other of [{}, { ZOOKEEPER_AUTH: `${USER}:not ours` }]) {
      const end = await run(other);
      expect(end).toMatchObject({ status: 77, stdout: Buffer.from("") });
      expect(end.stderr).toContain("ZOOKEEPER_AUTH");
      expect(end.stderr).not.toContain("not ours");
    }
    const status = await cli(["status", job, "--root", root]);
    expect(status.stdout.toString()).toContain("free");
  });

  it("can be told apart by a file, which holds what no argument may", async () => {
    const file = join(tmpdir(), `auth-${job}`);
    onTestFinished(() => rm(file));
    await writeFile(file, `${SECRET}\n`, { mode: 0o600 });
    const flags = ["--root", root, "--zookeeper-auth-file", file, "--zookeeper-acl", "private"];
    expect((await cli(["run", job, ...flags, "--", "true"])).status).toBe(0);
    expect(await aclOf(root, SECRET)).toEqual([OURS]);
    await writeFile(file, "hunter2\n");
    const bad = await cli(["run", job, ...flags, "--", "true"]);
    expect(bad.status).toBe(64);
    expect(bad.stderr).toContain("user:password");
    expect(bad.stderr).not.toContain("hunter2");
  });
});

describe("a server that wants to know everybody", () => {
  it("is content with a user and password, and denies who has none at once", async () => {
    const config = { "enforce.auth.enabled": "true", "enforce.auth.schemes": "digest" };
    await using server = await startZooKeeper({ zookeeper: { config } });
    const { connect } = server;
    await (await granted(ours({ connect }))).release();
    const denied = await granted(open({ connect })).catch((error) => error);
    expect(denied).toBeInstanceOf(ZooKeeperDeniedError);
    expect(denied.message).toContain("ZOOKEEPER_AUTH");
  });
});

describe("a server that takes no passwords", () => {
  it("denies at once, and is not asked for ever", async () => {
    const config = { "DigestAuthenticationProvider.enabled": "false" };
    await using server = await startZooKeeper({ zookeeper: { config } });
    const zookeeper = ours({ connect: server.connect });
    for (const waitMs of [0, 60_000]) {
      const denied = await granted(zookeeper, { waitMs }).catch((error) => error);
      expect(denied).toBeInstanceOf(ZooKeeperDeniedError);
      expect(denied.message).toContain("digest");
      expect(inspect(denied)).not.toContain(PASSWORD);
    }
  });
});

describe("a password", () => {
  it("is not shown by an object that has it", () => {
    expect(inspect(ours(), { depth: 9, showHidden: true })).not.toContain(PASSWORD);
    expect(JSON.stringify(ours())).not.toContain(PASSWORD);
  });

  it.each([
    [{ ...auth, user: "" }, "user"],
    [{ ...auth, user: "a:b" }, "user"],
    [{ ...auth, password: "" }, "password"],
  ])("has to be usable: %o", (bad, word) => {
    expect(() => open({ auth: bad })).toThrow(OptionError);
    expect(() => open({ auth: bad })).toThrow(word);
  });

  it("is what an access control list goes with", () => {
    expect(() => open({ acl: "private" })).toThrow(OptionError);
  });
});
