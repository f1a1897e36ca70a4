/**
 * The demo's story: three workers want one job; the first is stopped between its last check and its write, a successor
 * takes over and commits, and the first wakes and writes late.
 */
import { randomUUID } from "node:crypto";
import { fenceKeyOf } from "../../lib/redis/fence-key.js";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { openUnfencedSink } from "../../lib/redis/unfenced-sink.js";
import { WorkerProcess } from "./worker-process.js";
import type { WorkerEvent, WorkerOrder } from "./worker-protocol.js";

export interface StoryOptions {
  /** Connection string. */
  zookeeper: string;
  /** `redis://` URL. */
  redis: string;
  /** Folder whose text files are indexed. */
  input: string;
  /** false: the late write is a plain SET, as it is without a fence. */
  fenced: boolean;
  signal: AbortSignal;
  /** Told each step: who (a worker's name, or "demo"), and what. */
  onStep: (who: string, event: WorkerEvent | DemoEvent) => void;
}

export type DemoEvent =
  | { event: "stopped"; worker: string; timeoutMs: number }
  | { event: "continued"; worker: string };

export interface StoryEnd {
  /** Whether the story went as it is told: refused with the fence, overwritten without it. */
  asTold: boolean;
  verdict: string;
  /** Who wrote the result that is there in the end, and under which token. */
  result: { worker: string; token: string; files: number; words: number; top: [string, number][] };
}

/** The shortest that a server with its usual tick grants: the demo waits for one session to expire. */
const SESSION_TIMEOUT_MS = 4_000;

/** Longer than anything in the story takes on a slow machine. */
const STEP_MS = 60_000;

const [FIRST, SECOND, THIRD] = ["A", "B", "C"] as const;

/** @throws Error when a worker fails or the story does not go on */
export async function tellStory(options: StoryOptions): Promise<StoryEnd> {
  const { fenced, signal, onStep } = options;
  const id = randomUUID().slice(0, 8);
  const workers: WorkerProcess[] = [];
  const start = (name: string): WorkerProcess => {
    const worker = new WorkerProcess(orderOf(options, name, id), onStep);
    workers.push(worker);
    return worker;
  };
  try {
    const first = start(FIRST);
    const granted = await first.until("granted", STEP_MS, signal);
    const second = start(SECOND);
    await second.until("queued", STEP_MS, signal);
    const third = start(THIRD);
    await first.until("checked", STEP_MS, signal);

    first.stop();
    onStep("demo", { event: "stopped", worker: FIRST, timeoutMs: granted.timeoutMs });
    first.letWrite(); // waits in the pipe; the process is stopped

    const successors = await Promise.all(
      [second, third].map(async (worker) => {
        const { sequence } = await worker.until("granted", STEP_MS, signal);
        await worker.until("released", STEP_MS, signal);
        return sequence;
      }),
    );

    first.continue();
    onStep("demo", { event: "continued", worker: FIRST });
    const late = await first.until("wrote", STEP_MS, signal);
    await first.until("released", STEP_MS, signal);

    const { result, staleCount } = await takeResult(options, keyOf(id));
    const rising = successors.every((sequence) => sequence > granted.sequence);
    return fenced
      ? fencedEnd({ rising, result, late, staleCount })
      : unfencedEnd({ rising, result, late });
  } finally {
    await Promise.all(workers.map((worker) => worker.end()));
  }
}

type Result = StoryEnd["result"];
type Late = { outcome: string; sequence: number };

function fencedEnd(seen: {
  rising: boolean;
  result: Result;
  late: Late;
  staleCount: number;
}): StoryEnd {
  const { rising, result, late, staleCount } = seen;
  const asTold = rising && late.outcome === "stale" && staleCount === 1 && result.worker !== FIRST;
  const verdict = asTold
    ? `the late write of ${FIRST} (token ${late.sequence}) was refused, and the newer result stands`
    : `the story did not go as told: the late write was answered "${late.outcome}"`;
  return { asTold, verdict, result };
}

function unfencedEnd({
  rising,
  result,
  late,
}: {
  rising: boolean;
  result: Result;
  late: Late;
}): StoryEnd {
  const asTold = rising && result.worker === FIRST;
  const verdict = asTold
    ? `the late write of ${FIRST} (token ${late.sequence}) lies on top of a newer result: this is what the fence is for`
    : "the story did not go as told: nothing was overwritten";
  return { asTold, verdict, result };
}

function orderOf(options: StoryOptions, name: string, id: string): WorkerOrder {
  return {
    name,
    zookeeper: options.zookeeper,
    redis: options.redis,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    job: `demo-${id}`,
    key: keyOf(id),
    input: options.input,
    fenced: options.fenced,
    pausesBeforeWrite: name === FIRST,
  };
}

function keyOf(id: string): string {
  return `fencekeeper-demo:${id}`;
}

/** Reads what is there in the end, and removes it: the Redis may be the user's. */
async function takeResult({ redis, fenced }: StoryOptions, key: string) {
  const plain = openUnfencedSink({ url: redis });
  const sink = fenced ? openRedisSink({ url: redis }) : plain;
  try {
    const { value, fence } = await sink.readResult(key);
    const result = JSON.parse(value?.toString("utf8") ?? "{}") as Result;
    return { result, staleCount: fence?.staleCount ?? 0 };
  } finally {
    await plain.remove([key, fenceKeyOf(key)]);
    await Promise.all([sink.close(), plain.close()]);
  }
}
