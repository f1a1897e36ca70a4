/**
 * A gallery of faults put in on purpose, at the sink or between the recipe and its session. Goal: the checks are known
 * to be able to fail. A variant that survives is a hole in them.
 */
import { ConnectionLossError } from "../../lib/errors.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { parseContenderName } from "../../lib/zookeeper/znode-name.js";
import type { ScheduleOptions } from "./schedule.js";
import type { Distort } from "./simulated-source.js";

export interface BrokenVariant {
  name: string;
  options: Omit<ScheduleOptions, "seed">;
  /** What the violation that it must cause says. */
  violates: RegExp;
}

const OVERWRITTEN = /lies on top of/;
const TWO_HOLDERS = /while . had not been told/;
const LEFT = /contenders are left/;
const NO_END = /last round|not everybody/;

/** A session with some of its members replaced. */
function replacing(members: (session: Session) => Partial<Session>): Distort {
  return (session) => {
    const replaced = members(session);
    return new Proxy(session, {
      get(target, name) {
        const own = Reflect.get(replaced, name);
        if (own !== undefined) return own;
        const value = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

/** Contenders without those that come before the first one by the order of names as text. */
function sortedAsText(children: string[]): string[] {
  const names = children.filter((name) => parseContenderName(name) !== undefined).sort();
  return names.slice(-1);
}

export const BROKEN_VARIANTS: BrokenVariant[] = [
  {
    name: "the sink does not compare",
    options: { compares: "not at all" },
    violates: OVERWRITTEN,
  },
  {
    name: "the check is before the write instead of with it",
    options: { compares: "checks first, writes later" },
    violates: OVERWRITTEN,
  },
  {
    name: "a token equal to the fence is refused",
    options: { compares: "newer only" },
    violates: NO_END,
  },
  {
    name: "the queue is ordered by the text of names",
    options: {
      distort: replacing((session) => ({
        list: async (path) => {
          const { children, stat } = await session.list(path);
          return { children: sortedAsText(children), stat };
        },
      })),
    },
    violates: TWO_HOLDERS,
  },
  {
    name: "the deadline never comes nearer, because every moment counts as confirmed",
    options: {
      distort: replacing((session) => ({
        get lastConfirmedAtMs() {
          return session.clock.nowMs();
        },
      })),
    },
    violates: TWO_HOLDERS,
  },
  {
    name: "the timeout that was asked for is used instead of the negotiated one",
    options: { distort: replacing(() => ({ negotiatedTimeoutMs: 60_000 })) },
    violates: TWO_HOLDERS,
  },
  {
    name: "a delete whose reply was lost counts as done",
    options: {
      distort: replacing((session) => ({
        delete: async (path) => {
          try {
            await session.delete(path);
          } catch (error) {
            if (!(error instanceof ConnectionLossError)) throw error;
          }
        },
      })),
    },
    violates: new RegExp(`${LEFT.source}|${NO_END.source}`),
  },
  {
    name: "a create whose reply was lost counts as not done",
    options: {
      distort: replacing((session) => ({
        // the recovery looks for a name that the server never saw
        create: (path, data, mode) =>
          session.create(mode === "ephemeralSequential" ? otherUuid(path) : path, data, mode),
      })),
    },
    violates: new RegExp(`${LEFT.source}|${NO_END.source}`),
  },
];

/** The same path with the last two digits of the uuid exchanged. */
function otherUuid(path: string): string {
  return path.replace(/(.)(.)-lock-$/, (_all, a: string, b: string) =>
    a === b ? `${a}${b === "0" ? "1" : "0"}-lock-` : `${b}${a}-lock-`,
  );
}
