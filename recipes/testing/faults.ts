/**
 * The faults that a simulation can be put through, each by its name.
 */
import { claimPath } from "../../lib/zookeeper/paths.js";
import { compactFor } from "./compactor.js";
import { JOB } from "./job.js";
import type { Worker } from "./worker.js";
import type { World } from "./world.js";

/** Does one fault to the world, and what has to be done when it ends is scheduled with it. */
type Fault = (world: World, worker: Worker, lastsMs: number) => void;

const OPERATIONS = ["create", "list", "read", "delete", "sync"];

/** A server restarts faster than most faults end, in milliseconds. */
const RESTART_MS_MAX = 3_000;

/** A follower lags this much at most, in milliseconds. */
const LAG_MS_MAX = 3_000;

const SLOW_MS_MAX = 800;

export const FAULTS = {
  /** The connection breaks, and both sides notice. */
  cut: (_world, { zookeeper }) => zookeeper.handle?.cut(),

  loseRequest: ({ random }, { zookeeper }) =>
    zookeeper.handle?.lose("request", random.pick(OPERATIONS)),

  loseReply: ({ random }, { zookeeper }) =>
    zookeeper.handle?.lose("reply", random.pick(OPERATIONS)),

  /** Nothing passes, and nobody is told; what was sent meanwhile arrives at the end. */
  partition: (world, { zookeeper }, lastsMs) => {
    const { held } = zookeeper.link;
    const directions = world.random.pick([
      ["requests", "replies"],
      ["requests"],
      ["replies"],
    ] as const);
    for (const direction of directions) held.add(direction);
    world.later(lastsMs, () => {
      for (const direction of directions) held.delete(direction);
      for (const handle of zookeeper.handles) handle.healed();
    });
  },

  slowLink: (world, { zookeeper }, lastsMs) => {
    zookeeper.link.slowMs = world.random.whole(1, SLOW_MS_MAX);
    world.later(lastsMs, () => {
      zookeeper.link.slowMs = 0;
    });
  },

  /** The process is stopped where it is, with all its threads. */
  stop: (world, { process }, lastsMs) => {
    process.stop();
    world.later(lastsMs, () => process.continue());
  },

  /** The process's main thread is busy, its session's thread is not. */
  block: (world, { process }, lastsMs) => {
    process.block();
    world.later(lastsMs, () => process.unblock());
  },

  /** The process dies, and another one takes its place after a while. */
  crash: (world, worker, lastsMs) => world.crash(worker, lastsMs),

  restartServer: ({ ensemble, random }, _worker, lastsMs) => {
    const server = random.pick(ensemble.servers);
    ensemble.restart(server, Math.min(lastsMs, RESTART_MS_MAX));
  },

  changeLeader: ({ ensemble }, _worker, lastsMs) =>
    ensemble.changeLeader(Math.min(lastsMs, RESTART_MS_MAX)),

  slowFollower: (world, _worker, lastsMs) => {
    const { ensemble, random } = world;
    const followers = ensemble.servers.filter((server) => server !== ensemble.leader);
    if (followers.length === 0) return;
    const server = random.pick(followers);
    server.lagMs = random.whole(1, LAG_MS_MAX);
    world.later(lastsMs, () => {
      server.lagMs = 0;
    });
  },

  /** The ensemble ends a session before its time, as an operator can. */
  expireSession: ({ ensemble, cutShort }, { zookeeper }) => {
    const id = zookeeper.handle?.sessionId;
    if (id === undefined) return;
    cutShort.add(id);
    ensemble.expireSession(id);
  },

  /** A contender of the worker's name comes to belong to another session. */
  giveAwayCreate: (world, { zookeeper }, lastsMs) => {
    const id = world.strangersSession(lastsMs);
    zookeeper.handle?.giveAway(id);
  },

  /** The client reports what it reported last, and nothing happens any more. */
  wedgeClient: (_world, { zookeeper }) => zookeeper.handle?.wedge(),

  /** A stranger deletes a contender. */
  deleteContender: ({ ensemble, monitor, random }) => {
    const names = ensemble.childrenOf(PATH);
    if (names.length > 0) monitor.takeAway(`${PATH}/${random.pick(names)}`);
  },

  /** A stranger, or the server itself, deletes the claim path while it is empty. */
  deletePath: ({ ensemble }) => {
    const isThere = ensemble.childrenOf(claimsOf(PATH)).length > 0;
    if (isThere && ensemble.childrenOf(PATH).length === 0) ensemble.delete(PATH);
  },

  /** A stranger puts something among the contenders that is none. */
  foreignChild: (world, _worker, lastsMs) =>
    world.stranger(`foreign-${world.random.uuid()}-`, lastsMs),

  /** A client of another kind stands in the queue. */
  foreignContender: (world, _worker, lastsMs) =>
    world.stranger(`_c_${world.random.uuid()}-lock-`, lastsMs),

  loseSinkMessages: (world, _worker, lastsMs) => {
    world.weather.loss = 0.4;
    world.later(lastsMs, () => {
      world.weather.loss = 0;
    });
  },

  slowSink: (world, _worker, lastsMs) => {
    world.weather.slowMs = world.random.whole(1, SLOW_MS_MAX);
    world.later(lastsMs, () => {
      world.weather.slowMs = 0;
    });
  },

  restartSink: (world, _worker, lastsMs) => {
    world.weather.isUp = false;
    world.weather.scriptsLife += 1;
    world.later(Math.min(lastsMs, RESTART_MS_MAX), () => {
      world.weather.isUp = true;
    });
  },

  /** Fences are removed, as `fencekeeper compact` does. */
  compact: (world, _worker, lastsMs) => compactFor(world, lastsMs),

  flushScripts: ({ weather }) => {
    weather.scriptsLife += 1;
  },
} as const satisfies Record<string, Fault>;

const PATH = claimPath(JOB);

function claimsOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

export type FaultName = keyof typeof FAULTS;

export const FAULT_NAMES = Object.keys(FAULTS) as readonly FaultName[]; // exactly the names above
