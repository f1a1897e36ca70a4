/**
 * What the workers of a simulation do unless they are given something else: claims and fenced runs of one job with all
 * that a caller can do to them (waits of any length, cancelled at any moment, handlers that throw or do not listen).
 */
import {
  ClaimLostError,
  SequenceExhaustedError,
  SinkOutcomeUnknownError,
  SinkUnreachableError,
  ZooKeeperUnreachableError,
} from "../../lib/errors.js";
import { type Claim, type ClaimOptions, claim } from "../claim.js";
import { fencedRun } from "../fenced-run.js";
import { JOB } from "./job.js";
import type { Worker } from "./worker.js";

const KEY = "key";

/** Ranges in milliseconds. */
type Range = readonly [min: number, max: number];
const PAUSE_MS: Range = [1, 600];
const WORK_MS: Range = [1, 2_500];
/** Longer than a session lasts without its server. */
const LONG_WORK_MS: Range = [4_000, 10_000];
const LAST_WORK_MS: Range = [1, 50];
const WAIT_MS = [0, 0, 500, 5_000, 60_000] as const;

/** When no more faults come, one of so many rounds is committed, and everybody waits for long enough. */
const LAST_ROUNDS = 5;
const LAST_WAIT_MS = 300_000;

const KINDS = [fenced, fenced, fenced, held, careless];

class HandlerError extends Error {}
class Cancelled extends Error {}

export async function standardWork(worker: Worker): Promise<void> {
  for (let round = 1; !worker.faultsOver; round += 1) {
    worker.note(`round ${round}: ${await oneRound(worker, `${worker.name}${round}`)}`);
    await worker.pause(worker.random.whole(...PAUSE_MS));
  }
  // What the faults did may show after their end: a session that is found lost, a claim that goes with it.
  const lasts: string[] = [];
  while (lasts.at(-1) !== "committed" && lasts.length < LAST_ROUNDS) {
    lasts.push(await oneRound(worker, `${worker.name}-last`));
  }
  worker.note(`last rounds: ${lasts.join(", ")}`);
  if (lasts.at(-1) !== "committed") worker.violated(`no last round was committed: ${lasts}`);
  await worker.zookeeper.close();
}

async function oneRound(worker: Worker, value: string): Promise<string> {
  const { random, clock, faultsOver } = worker;
  const cancel = new AbortController();
  const waitMs = faultsOver ? LAST_WAIT_MS : random.pick(WAIT_MS);
  const cancelLater =
    !faultsOver && random.chance(0.2)
      ? clock.after(random.whole(0, 2_000), () => cancel.abort(new Cancelled("cancelled")))
      : () => {};
  const kind = faultsOver ? fenced : random.pick(KINDS);
  try {
    return await kind(worker, value, { waitMs, signal: cancel.signal });
  } catch (error) {
    if (error instanceof HandlerError || error instanceof Cancelled) return error.message;
    const explained =
      error instanceof ClaimLostError ||
      error instanceof SinkOutcomeUnknownError ||
      error instanceof SinkUnreachableError ||
      error instanceof ZooKeeperUnreachableError ||
      // a path that holds a stranger's child cannot be made afresh
      (error instanceof SequenceExhaustedError && worker.surroundings.strangersCame);
    if (!explained) worker.violated(`met an error that no fault explains: ${error}`);
    return explained ? error.code : String(error);
  } finally {
    cancelLater();
  }
}

type Waiting = Pick<ClaimOptions, "waitMs" | "signal">;

function claimOptions(worker: Worker, waiting: Waiting): ClaimOptions {
  const { zookeeper, random, name } = worker;
  worker.claims();
  return { zookeeper, job: JOB, holder: name, uuid: () => random.uuid(), ...waiting };
}

/** A fenced run, with its result committed. */
async function fenced(worker: Worker, value: string, waiting: Waiting): Promise<string> {
  let held: Claim | undefined;
  const options = { ...claimOptions(worker, waiting), result: { sink: worker.sink, key: KEY } };
  const answer = await fencedRun(options, async (granted) => {
    held = granted;
    worker.begins(granted);
    await workUnder(worker, granted);
    return `${value} under ${granted.token.text}`;
  });
  const accepted = answer.outcome === "committed" || answer.outcome === "duplicate";
  if (accepted && held !== undefined) worker.acknowledged(held);
  if (answer.outcome === "stale") worker.refused(answer.token, answer.fenceText);
  return answer.outcome;
}

/** The parts, in the hands of somebody who does not look whether the claim is lost: only the sink keeps him out. */
async function careless(worker: Worker, value: string, waiting: Waiting): Promise<string> {
  const { sink, name } = worker;
  const answer = await claim(claimOptions(worker, waiting));
  if (answer.outcome === "busy") return "busy";
  const { claim: granted } = answer;
  const { token } = granted;
  const confirm = (signal: AbortSignal | undefined) => granted.confirm(signal);
  const identity = { key: KEY, job: JOB, token, holder: name, confirm };
  let letGo = () => {};
  try {
    const raised = await sink.advanceFence(identity);
    if (raised.outcome === "stale") worker.refused(token, raised.fenceText);
    if (raised.outcome !== "advanced" && raised.outcome !== "current") return raised.outcome;
    letGo = sink.keepRaised(identity);
    worker.begins(granted);
    await workUnder(worker, granted);
    const { outcome, ...more } = await sink.commitResult({
      ...identity,
      value: `${value} under ${token.text}`,
    });
    if ("fenceText" in more) worker.refused(token, more.fenceText);
    if (outcome === "committed" || outcome === "duplicate") worker.acknowledged(granted);
    return outcome;
  } finally {
    letGo();
    await granted.release();
  }
}

/** A claim that is held for a while and released. */
async function held(worker: Worker, _value: string, waiting: Waiting): Promise<string> {
  const answer = await claim(claimOptions(worker, waiting));
  if (answer.outcome === "busy") return "busy";
  await using granted = answer.claim;
  await workUnder(worker, granted);
  return granted.release();
}

async function workUnder(worker: Worker, granted: Claim): Promise<void> {
  const { random, faultsOver } = worker;
  const ended = worker.holds(granted);
  try {
    const listens = random.chance(0.7);
    const range = faultsOver ? LAST_WORK_MS : random.chance(0.15) ? LONG_WORK_MS : WORK_MS;
    const ms = random.whole(...range);
    await worker.pause(ms, listens ? granted.signal : undefined);
    if (!faultsOver && random.chance(0.05)) throw new HandlerError("the handler threw");
  } finally {
    ended();
  }
}
