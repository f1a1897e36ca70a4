/** A session opens, or tells why it cannot, also where the reason was lost with the connection. */
import { expect, it } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { ZooKeeperDeniedError, ZooKeeperUnreachableError } from "../../lib/errors.js";
import { credentialsOf } from "../../lib/zookeeper/access.js";
import type { ConfirmedHandle, HandleEvents } from "../../lib/zookeeper/handle.js";
import { openSession } from "../../lib/zookeeper/open-session.js";
import { requestError, ZK } from "../../lib/zookeeper/request-error.js";

/** A server that ends each connection at its first request; from the second on it is heard why. */
function cutOff(handles: { count: number }, tells: boolean) {
  return async (_request: unknown, events: HandleEvents): Promise<ConfirmedHandle> => {
    handles.count += 1;
    const isTold = tells && handles.count > 1;
    const unused = () => Promise.reject(new Error("not asked for here"));
    queueMicrotask(() => events.connected({ sessionId: "1", timeoutMs: 10_000 }));
    return {
      ...{ create: unused, read: unused, list: unused, delete: unused, sync: unused },
      ...{ setAcl: unused, lastConfirmedAtMs: Number.NEGATIVE_INFINITY, keepConfirmed: () => {} },
      exists: async (path) => {
        if (isTold) events.refused();
        throw requestError("exists", path, ZK.connectionLoss, "cut off");
      },
      close: async () => {},
    };
  };
}

const open = (handles: { count: number }, tells: boolean, user?: string) =>
  openSession({
    ...{ servers: { servers: [{ host: "localhost", port: 1 }], chroot: "" }, clock: systemClock },
    ...{ sessionTimeoutMs: 10_000, openHandle: cutOff(handles, tells) },
    credentials:
      user === undefined ? undefined : credentialsOf({ scheme: "digest", user, password: "p" }),
    deadline: Deadline.after(5_000, systemClock),
    signal: new AbortController().signal,
  });

it("whoever gives a password asks again why it was cut off, and is told that it is not accepted", async () => {
  const handles = { count: 0 };
  await expect(open(handles, true, "worker")).rejects.toBeInstanceOf(ZooKeeperDeniedError);
  expect(handles.count).toBe(2);
});

it("whoever gives none is told at once that the connection was not kept", async () => {
  const handles = { count: 0 };
  const opening = open(handles, false);
  await expect(opening).rejects.toBeInstanceOf(ZooKeeperUnreachableError);
  expect(handles.count).toBe(1);
});
