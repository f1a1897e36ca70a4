/**
 * A simulated ZooKeeper as one process sees it: the production session logic and session pool, on simulated handles.
 */
import { Deadline } from "../../lib/deadline.js";
import { ZooKeeperUnreachableError } from "../../lib/errors.js";
import { confirming } from "../../lib/zookeeper/confirming-handle.js";
import { openSession } from "../../lib/zookeeper/open-session.js";
import type { HandleSession } from "../../lib/zookeeper/session.js";
import { SessionPool } from "../../lib/zookeeper/session-pool.js";
import type { Session, SessionSource } from "../../lib/zookeeper/session-port.js";
import { acrossThreads } from "./across-threads.js";
import { Link } from "./connection.js";
import type { Lane } from "./lane.js";
import type { Random } from "./random.js";
import type { SimulatedEnsemble } from "./simulated-ensemble.js";
import { SimulatedHandle } from "./simulated-handle.js";
import type { SimulatedProcess } from "./simulated-process.js";

export interface SimulatedZooKeeperOptions {
  process: SimulatedProcess;
  ensemble: SimulatedEnsemble;
  random: Random;
  /** What is asked for; the ensemble may grant another. */
  sessionTimeoutMs: number;
  connectTimeoutMs: number;
  /** How long the user's thread may be busy, in milliseconds. */
  stuckMs: number;
}

const NOWHERE = { servers: [{ host: "simulated", port: 2181 }], chroot: "" };

export class SimulatedZooKeeper implements SessionSource {
  readonly clock: Lane;
  readonly link = new Link();
  readonly sessions: HandleSession[] = [];
  readonly handles: SimulatedHandle[] = [];
  readonly #options: SimulatedZooKeeperOptions;
  readonly #pool: SessionPool;

  constructor(options: SimulatedZooKeeperOptions) {
    this.#options = options;
    this.clock = options.process.main;
    this.#pool = new SessionPool({
      clock: this.clock,
      connectTimeoutMs: options.connectTimeoutMs,
      open: (signal) => this.#open(signal),
      unreachable: () => new ZooKeeperUnreachableError("no simulated server answered in time"),
    });
  }

  /** The handle that is in use. */
  get handle(): SimulatedHandle | undefined {
    return this.handles.at(-1);
  }

  /** Reasons to make another contender for a claim: a session that is gone, a create that was not answered. */
  get reasonsToCreate(): number {
    return this.handles.reduce((sum, each) => sum + each.sessionCount + each.unknownCreates, 0);
  }

  session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    return this.#pool.session(deadline, signal);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(signal: AbortSignal): Promise<HandleSession> {
    const { process, ensemble, random, sessionTimeoutMs, connectTimeoutMs } = this.#options;
    const open = confirming(
      async (request, events) => {
        const lane = process.sessions;
        const handle = new SimulatedHandle({
          ...{ ensemble, lane, link: this.link, random, request, events },
        });
        this.handles.push(handle);
        return handle;
      },
      { clock: process.sessions },
    );
    const session = await openSession({
      servers: NOWHERE,
      sessionTimeoutMs,
      openHandle: acrossThreads(open, this.#options),
      clock: this.clock,
      deadline: Deadline.after(connectTimeoutMs, this.clock),
      signal,
    });
    this.sessions.push(session);
    return session;
  }
}
