/**
 * How a simulated server treats one request: in line with the session's others, a write and a sync by way of the
 * leader, a read from what the server itself has applied.
 */
import { ZooKeeperRequestError } from "../../lib/errors.js";
import { requestError, ZK } from "../../lib/zookeeper/request-error.js";
import type { Connection } from "./connection.js";
import type { Random } from "./random.js";
import type { SessionRecord, SimulatedEnsemble } from "./simulated-ensemble.js";
import type { SimulatedServer } from "./simulated-server.js";

export interface ServedRequest<T> {
  ensemble: SimulatedEnsemble;
  random: Random;
  session: SessionRecord;
  connection: Connection;
  operation: string;
  path: string;
  /** What the request does, for a session, on what a server has applied. */
  apply: (session: string, zxid: number, server: SimulatedServer) => T;
}

/** Range of the time until the leader has a request, in milliseconds. */
const TO_LEADER_MS = [1, 3] as const;

/** Keeps what is done in line apart, in milliseconds: what happens at one moment has no order. */
const APART_MS = 0.001;

const BY_WAY_OF_LEADER = new Set(["create", "delete", "sync", "setAcl"]);

/**
 * Calls back with the answer when the server sends it, and with the last transaction that the server had applied; never
 * when the request or the answer is lost.
 */
export function serve<T>(
  request: ServedRequest<T>,
  answer: (value: () => T, zxid: number) => void,
): void {
  const { ensemble, random, session, connection, operation } = request;
  const { scheduler } = ensemble;
  const { server, life } = connection;
  if (!server.isUp || server.life !== life || !ensemble.leader.isUp) return;
  if (!ensemble.sessions.has(session.id)) {
    answer(expired(request), server.zxid);
    return;
  }
  // The session has moved to another connection: what comes on the old one is thrown away.
  if (session.connection !== connection) return;
  const nowMs = scheduler.nowMs();
  session.touchedAtMs = Math.max(session.touchedAtMs, nowMs);
  const line = session.lines.get(server) ?? { atLeaderMs: 0, readyMs: 0 };
  session.lines.set(server, line);
  if (!BY_WAY_OF_LEADER.has(operation)) {
    // A read waits until the server has applied the session's own writes before it.
    line.readyMs = Math.max(nowMs, line.readyMs + APART_MS);
    inTime(request, line.readyMs, () => {
      if (server.life === life) answer(outcome(request), server.zxid);
    });
    return;
  }
  // What goes by way of the leader is passed on at once, however far behind the server is.
  const atLeaderMs = Math.max(nowMs + random.whole(...TO_LEADER_MS), line.atLeaderMs + APART_MS);
  const readyAtMs = Math.max(atLeaderMs + server.lagMs, line.readyMs + APART_MS);
  line.atLeaderMs = atLeaderMs;
  line.readyMs = readyAtMs;
  inTime(request, atLeaderMs, () => {
    // A server that fell meanwhile may have passed the request on, or not.
    if (server.life !== life && random.chance(0.5)) return;
    // The leader refuses what comes through a server that the session has left.
    if ((session.connection ?? connection).server !== server) return;
    const value = outcome(request);
    const { zxid } = ensemble;
    inTime(request, readyAtMs, () => {
      if (server.life !== life) return;
      server.catchUpTo(zxid);
      answer(value, zxid);
    });
  });
}

function inTime<T>({ ensemble }: ServedRequest<T>, atMs: number, run: () => void): void {
  const { scheduler } = ensemble;
  if (atMs <= scheduler.nowMs()) run();
  else scheduler.after(atMs - scheduler.nowMs(), run);
}

/** Carries the request out; what it gives returns the value, or throws the server's error. */
function outcome<T>(request: ServedRequest<T>): () => T {
  const { ensemble, session, connection, apply } = request;
  if (!ensemble.sessions.has(session.id)) return expired(request);
  try {
    const value = apply(session.id, connection.server.zxid, connection.server);
    return () => value;
  } catch (error) {
    if (!(error instanceof ZooKeeperRequestError)) throw error;
    return () => {
      throw error;
    };
  }
}

function expired<T>({ operation, path }: ServedRequest<T>): () => T {
  return () => {
    throw requestError(operation, path, ZK.sessionExpired, "simulated");
  };
}
