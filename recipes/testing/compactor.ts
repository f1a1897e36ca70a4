/**
 * A process that removes fences with the production `compact`, while the workers go on; it may die in the middle.
 */
import { Deadline } from "../../lib/deadline.js";
import {
  ConfigurationError,
  SinkOutcomeUnknownError,
  SinkUnreachableError,
  ZooKeeperUnreachableError,
} from "../../lib/errors.js";
import { type Asked, ask } from "../../lib/redis/ask.js";
import type { Limits } from "../../lib/redis/attempt.js";
import { resultKeyOf } from "../../lib/redis/fence-key.js";
import { type FenceStore, type FoundFence, scriptedFences } from "../../lib/redis/fence-store.js";
import { claimsPath } from "../../lib/zookeeper/paths.js";
import { compact } from "../compact.js";
import { SimulatedProcess } from "./simulated-process.js";
import { SimulatedSinkConnection } from "./simulated-sink-connection.js";
import type { World } from "./world.js";

const CALL_TIMEOUT_MS = 3_000;
const ANSWER_MS = 10_000;

/** Results do not expire here, so that mostly those with a result go too. */
const WITH_RESULTS_SHARE = 0.8;

/** Jobs that are claimed below another root, as lock paths of the user's are, lose their fences while they are held. */
const ELSEWHERE_SHARE = 0.7;
const ELSEWHERE = "/elsewhere";

/** Starts one, and ends it after a while if it has not ended by then. */
export function compactFor(world: World, forMs: number): void {
  const { random, scheduler } = world;
  const process = new SimulatedProcess("compact", scheduler);
  const zookeeper = world.zookeeperOf(process);
  world.later(forMs, () => {
    process.crash();
    zookeeper.handle?.cut();
  });
  const withResults = random.chance(WITH_RESULTS_SHARE);
  const fences = fencesOf(world, process);
  const root = random.chance(ELSEWHERE_SHARE) ? elsewhere(world) : undefined;
  compact({ zookeeper, fences, root, withResults, answerMs: ANSWER_MS, uuid: () => random.uuid() })
    .then(
      ({ dropped, floorText }) => world.note("compact", `dropped ${dropped} below ${floorText}`),
      (error) => {
        const explained =
          error instanceof SinkOutcomeUnknownError ||
          error instanceof SinkUnreachableError ||
          error instanceof ZooKeeperUnreachableError ||
          error instanceof ConfigurationError; // nobody has claimed yet
        if (!explained) world.violated(`compact met an error that no fault explains: ${error}`);
      },
    )
    .then(() => zookeeper.close());
}

function elsewhere({ ensemble }: World): string {
  for (const path of [ELSEWHERE, claimsPath(ELSEWHERE)]) {
    const isThere = ensemble.tree.find(path, ensemble.zxid) !== undefined;
    if (!isThere) ensemble.create("an operator", path, "", "persistent");
  }
  return ELSEWHERE;
}

function fencesOf(world: World, process: SimulatedProcess): FenceStore {
  const { random, store, weather } = world;
  const connection = new SimulatedSinkConnection({ process, random, store, weather });
  const limitsOf = (): Limits => ({
    deadline: Deadline.after(CALL_TIMEOUT_MS, process.main),
    signal: undefined,
  });
  const reader: Asked<(nowMs: number) => FoundFence[]> = {
    place: connection.place,
    run: (read, limits) => connection.look(read, limits),
  };
  const met = (nowMs: number) =>
    store.keyspace.keys(nowMs).flatMap((key) => found(world, key, nowMs));
  const question = {
    request: () => met,
    writes: false,
    answerOf: (reply: unknown) => reply as FoundFence[], // what `met` gave
  };
  return {
    ...scriptedFences(connection, limitsOf),
    async *pages() {
      yield await ask<FoundFence[], typeof met>(reader, question, limitsOf());
    },
    close: () => connection.close(),
  };
}

function found({ store }: World, fenceKey: string, nowMs: number): FoundFence | [] {
  const { keyspace } = store;
  const key = resultKeyOf(fenceKey);
  const hash = keyspace.hash(fenceKey, nowMs);
  if (key === undefined || hash === undefined) return [];
  return {
    ...{ key, tokenText: hash.get("token") ?? "", job: hash.get("job") ?? "" },
    hasResult: keyspace.typeOf(key, nowMs) !== "none",
  };
}
