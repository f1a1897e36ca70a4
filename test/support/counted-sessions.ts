/**
 * Sessions that are counted: how many listeners and keepers their users have left on them. A recipe that forgets one of
 * them at each turn grows without end in a process that runs for weeks.
 */
import type { Deadline } from "../../lib/deadline.js";
import type { Session, SessionSource } from "../../lib/zookeeper/session-port.js";

type Subscribe = (...args: never[]) => () => void;

const SUBSCRIPTIONS: (string | symbol)[] = ["onState", "onWatch", "keepConfirmed"];

export class CountedSessions implements SessionSource {
  readonly #wrapped = new WeakMap<Session, Session>();
  #subscriptions = 0;
  #sessions = 0;

  constructor(readonly source: SessionSource) {}

  /** Listeners and keepers that there are now, on all sessions. */
  get subscriptions(): number {
    return this.#subscriptions;
  }

  /** Sessions so far. */
  get sessions(): number {
    return this.#sessions;
  }

  get clock() {
    return this.source.clock;
  }

  async session(deadline: Deadline, signal?: AbortSignal): Promise<Session> {
    const session = await this.source.session(deadline, signal);
    const known = this.#wrapped.get(session);
    if (known !== undefined) return known;
    const counted = this.#wrap(session);
    this.#wrapped.set(session, counted);
    this.#sessions += 1;
    return counted;
  }

  #wrap(session: Session): Session {
    return new Proxy(session, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        const bound = value.bind(target);
        return SUBSCRIPTIONS.includes(name) ? this.#counting(bound) : bound;
      },
    });
  }

  #counting(subscribe: Subscribe): Subscribe {
    return (...args) => {
      const stop = subscribe(...args);
      this.#subscriptions += 1;
      let stopped = false;
      return () => {
        if (!stopped) this.#subscriptions -= 1;
        stopped = true;
        stop();
      };
    };
  }
}
