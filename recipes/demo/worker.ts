/**
 * One worker process of the demo: claims the job, indexes words, checks its claim once more, and writes its result.
 * It writes even when it was told that its claim is lost, as a worker does that was stopped between check and write.
 */
import { createInterface } from "node:readline";
import { openRedisSink } from "../../lib/redis/redis-sink.js";
import { openUnfencedSink } from "../../lib/redis/unfenced-sink.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { type Claim, claim } from "../claim.js";
import { indexWords } from "./word-index.js";
import { GO, type WorkerEvent, type WorkerOrder } from "./worker-protocol.js";

/** How long a worker stands in the queue; the demo is over long before. */
const WAIT_MS = 300_000;

/** Files between two lines about progress. */
const FILES_PER_LINE = 10;

function say(event: WorkerEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

async function work(order: WorkerOrder): Promise<void> {
  const zookeeper = new ZooKeeper({
    connect: order.zookeeper,
    sessionTimeoutMs: order.sessionTimeoutMs,
  });
  const sink = (order.fenced ? openRedisSink : openUnfencedSink)({ url: order.redis });
  try {
    say({ event: "queued" });
    const { job, name: holder } = order;
    const answer = await claim({ zookeeper, job, holder, waitMs: WAIT_MS });
    if (answer.outcome !== "granted") throw new Error("the claim was not granted in time");
    await fulfil(order, answer.claim, sink);
    say({ event: "released", answer: await answer.claim.release() });
  } finally {
    await Promise.all([zookeeper.close(), sink.close()]);
  }
}

async function fulfil(
  order: WorkerOrder,
  held: Claim,
  sink: ReturnType<typeof openRedisSink>,
): Promise<void> {
  const { token, negotiatedTimeoutMs: timeoutMs } = held;
  const { sequence } = token;
  say({ event: "granted", sequence, token: token.text, timeoutMs });
  held.signal.addEventListener("abort", () => {
    say({ event: "told", reason: held.signal.reason.message });
  });
  const identity = { key: order.key, job: order.job, token, holder: order.name };
  const raised = await sink.advanceFence(identity);
  if (raised.outcome === "stale" || raised.outcome === "foreign") {
    throw new Error(`the fence could not be raised: ${raised.outcome}`);
  }
  if (raised.outcome !== "observed" && raised.present !== undefined) {
    say({ event: "present", sequence: Number(raised.present.tokenText.slice(-10)) });
    return;
  }
  const index = await indexWords(order.input, (files) => {
    if (files % FILES_PER_LINE === 0) say({ event: "indexing", files });
  });
  held.signal.throwIfAborted(); // the last check there is; what follows may be late all the same
  say({ event: "checked", files: index.files, words: index.words });
  if (order.pausesBeforeWrite) await untilToldToGo();
  const value = JSON.stringify({ worker: order.name, token: token.text, ...index });
  const written = await sink.commitResult({ ...identity, value });
  const fenceText = written.outcome === "stale" ? written.fenceText : undefined;
  say({ event: "wrote", outcome: written.outcome, sequence, fenceText });
}

async function untilToldToGo(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === GO) return;
  }
  throw new Error("the demo has gone"); // our standard input ended: nobody is left to report to
}

try {
  await work(JSON.parse(process.argv[2] ?? "") as WorkerOrder);
} catch (error) {
  say({ event: "failed", message: error instanceof Error ? error.message : String(error) });
  process.exitCode = 1;
}
