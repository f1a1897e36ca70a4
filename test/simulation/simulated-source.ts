/**
 * Where a simulated process gets its sessions from: the living one, or a fresh one after a loss.
 */
import type { Deadline } from "../../lib/deadline.js";
import { TIMED_OUT } from "../../lib/deadline.js";
import { ZooKeeperUnreachableError } from "../../lib/errors.js";
import type { Session, SessionSource } from "../../lib/zookeeper/session-port.js";
import { untilState } from "../../lib/zookeeper/until-state.js";
import type { SimulatedProcess } from "./simulated-process.js";
import { SimulatedSession } from "./simulated-session.js";
import type { SimulatedZooKeeper } from "./simulated-zookeeper.js";

/** Puts a fault of ours between the recipe and its session, to see that the checks find it. */
export type Distort = (session: Session) => Session;

const CONNECT_TIMEOUT_MS = 5_000;

export class SimulatedSource implements SessionSource {
  readonly sessions: SimulatedSession[] = [];

  constructor(
    readonly clock: SimulatedProcess,
    readonly server: SimulatedZooKeeper,
    readonly options: { timeoutMs: number; distort: Distort },
  ) {}

  get current(): SimulatedSession | undefined {
    return this.sessions.at(-1);
  }

  async session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    const bounded = deadline.atMost(CONNECT_TIMEOUT_MS);
    for (;;) {
      const session = this.#living();
      const state = await untilState(session, (each) => each !== "SUSPENDED", bounded, signal);
      if (state === TIMED_OUT) throw new ZooKeeperUnreachableError("simulated: cut off");
      if (state === "CONNECTED") return this.options.distort(session);
    }
  }

  #living(): SimulatedSession {
    const { current } = this;
    if (current !== undefined && current.state !== "LOST") return current;
    const fresh = new SimulatedSession(this.clock, this.server, this.options.timeoutMs);
    this.sessions.push(fresh);
    return fresh;
  }
}
