/**
 * Opens a session: a fresh handle, its first connection, and a first exchange, all before one deadline.
 */
import type { Clock } from "../clock.js";
import { type Deadline, settleWithin, TIMED_OUT, untilPassed } from "../deadline.js";
import {
  ConfigurationError,
  NoNodeError,
  ZooKeeperDeniedError,
  ZooKeeperRequestError,
  ZooKeeperUnreachableError,
} from "../errors.js";
import type { Acl, Credentials } from "./access.js";
import { type ConnectString, formatConnectString } from "./connect-string.js";
import type { OpenHandle } from "./handle.js";
import { requestError, ZK } from "./request-error.js";
import { HandleSession } from "./session.js";

export interface OpenSessionOptions {
  servers: ConnectString;
  /** What is asked for; the server may grant another. */
  sessionTimeoutMs: number;
  /** Who we are; undefined: nobody in particular. */
  credentials?: Credentials | undefined;
  /** What the znodes that we make are to be given. */
  protection?: Acl | undefined;
  openHandle: OpenHandle;
  clock: Clock;
  deadline: Deadline;
  /** Gives up opening. */
  signal: AbortSignal;
}

/** Pause before a fresh handle is tried, in milliseconds. */
const RETRY_MS = 50;

/** Another handle may fare better: this one could not even begin, or did not get to hear why it was cut off. */
class TryAgain extends ZooKeeperUnreachableError {}

/**
 * Opens a session with a fresh handle. A handle that begins with an address that the network refuses at once is dead;
 * another one begins with another address, so they are tried until the deadline.
 *
 * @throws ZooKeeperUnreachableError when no server has answered before the deadline
 * @throws ZooKeeperDeniedError when the server does not accept our credentials, or wants some
 * @throws ConfigurationError when the chroot does not exist
 * @throws NativeClientError when the client's native part was not built
 */
export async function openSession(options: OpenSessionOptions): Promise<HandleSession> {
  const { clock, deadline, signal, protection } = options;
  for (;;) {
    const session = new HandleSession(clock, protection);
    try {
      await begin(session, options);
      return session;
    } catch (error) {
      await session.close();
      if (!(error instanceof TryAgain) || deadline.passed) throw error;
    }
    await untilPassed(deadline.atMost(RETRY_MS), signal);
  }
}

async function begin(session: HandleSession, options: OpenSessionOptions): Promise<void> {
  const { servers, sessionTimeoutMs, credentials, openHandle, deadline, signal } = options;
  const address = formatConnectString(servers);
  const unreachable = (why: string) =>
    `no ZooKeeper server at ${address} ${why}: check the address, and that a server runs there`;
  const inTime = async <T>(promise: Promise<T>, why: string): Promise<T> => {
    const result = await settleWithin(promise, deadline, signal);
    if (result === TIMED_OUT) throw new ZooKeeperUnreachableError(unreachable(why));
    return result;
  };
  const opening = openHandle({ address, sessionTimeoutMs, credentials }, session.handleEvents);
  const handle = await inTime(session.use(opening), "could be asked in time");
  if (handle === undefined) throw new TryAgain(unreachable("could be used"));
  await inTime(session.connected, "answered in time");
  // The first exchange whose start we know; it also shows whether the chroot is there.
  try {
    await inTime(handle.exists("/"), "answered a first request in time");
  } catch (error) {
    if (error instanceof NoNodeError) {
      throw new ConfigurationError(
        `the chroot ${servers.chroot} of the ZooKeeper address does not exist: create it, or correct the address`,
        { cause: error },
      );
    }
    if (session.refused) throw requestError("connect", "/", ZK.authFailed, "");
    if (error instanceof ZooKeeperDeniedError) throw error;
    if (!(error instanceof ZooKeeperRequestError)) throw error;
    const Fault = credentials === undefined ? ZooKeeperUnreachableError : TryAgain;
    // a server that does not take a password says so and closes, and what it said can be lost with the connection
    throw new Fault(unreachable("kept the connection"), { cause: error });
  }
  session.begin();
}
