/**
 * One attempt to claim: one contender, from its entry into the queue to its grant or its removal.
 * A grant needs our own znode and no lower sequence, both from one listing; every other way out removes the contender.
 */
import { Deadline, settleWithin } from "../../lib/deadline.js";
import {
  ConnectionLossError,
  NoNodeError,
  SessionClosedError,
  SessionLostError,
} from "../../lib/errors.js";
import { generationFromCzxid, isExhausted, makeToken } from "../../lib/token.js";
import { positionOf, readQueue } from "../../lib/zookeeper/queue-order.js";
import type { ContenderName } from "../../lib/zookeeper/znode-name.js";
import { type Attempt, unreachable, untilUsable, withinAnswer } from "./attempt-context.js";
import type { ClaimAnswer } from "./claim-options.js";
import type { Claim } from "./claim-port.js";
import { Contender, type Listing } from "./contender.js";
import { exhausted, isNearEnd, nearEnd } from "./counter-end.js";
import { HeldClaim } from "./held-claim.js";
import { holderRecord } from "./holder.js";
import { makeClaimPath } from "./parents.js";
import { waitForPredecessor } from "./predecessor.js";

/** Why an attempt ended without an answer: its session or its znode is gone, and a new attempt is due. */
export type Again = "again";

/** Our number was too near the end of the counter of the path that this transaction made; our contender has left. */
export interface NearEnd {
  outcome: "near the end";
  czxid: number;
}

/** Time for the removal of our contender before we answer; after it, the removal goes on in the background. */
const REMOVAL_MS = 2_000;

/** One contender, from its entry to its grant or its removal. */
export async function attempt(context: Attempt): Promise<ClaimAnswer | Again | NearEnd> {
  const { session } = context;
  const contender = new Contender(context, context.options.uuid?.());
  let granted = false;
  try {
    let listing = await enter(context, contender);
    for (;;) {
      if (listing === undefined || contender.name === undefined) return "again";
      const turn = await takeTurn(context, contender, listing);
      if (turn === "again") return "again";
      if (turn !== "wait") {
        granted = turn.outcome === "granted";
        return turn;
      }
      listing = await look(context, contender);
    }
  } catch (error) {
    if (error instanceof SessionLostError) return "again";
    if (error instanceof SessionClosedError && session.state === "LOST") return "again";
    throw error;
  } finally {
    if (!granted) await leave(context, contender);
  }
}

/** What the listing means for us; where it means waiting, waits until there is a reason to list again. */
async function takeTurn(
  context: Attempt,
  contender: Contender,
  listing: Listing,
): Promise<ClaimAnswer | Again | NearEnd | "wait"> {
  const { session, path, options, queue, warn, renewable } = context;
  const { contenders, foreign } = readQueue(listing.children);
  if (foreign.length > 0) warn(`${path} has children that are no contenders: ${foreign[0]}`);
  const position = positionOf({ contenders, foreign }, contender.name ?? "");
  if (position.kind === "missing") return "again";
  const { sequence } = position.own;
  if (isNearEnd(sequence)) {
    const canEmpty = renewable && foreign.length === 0;
    if (canEmpty) return { outcome: "near the end", czxid: listing.stat.czxid };
    if (isExhausted(sequence)) throw exhausted(path, sequence);
    warn(nearEnd(path, sequence));
  }
  if (position.kind === "first") {
    if (session.state === "LOST") return "again"; // lost while the listing was on its way
    options.signal?.throwIfAborted();
    return { outcome: "granted", claim: grant(context, contender, { own: position.own, listing }) };
  }
  const { ahead } = position;
  const holder = contenders[0]?.name ?? "";
  if (queue.passed) {
    if (session.state !== "CONNECTED") throw unreachable(context);
    return { outcome: "busy", holder, ahead };
  }
  context.tellPosition({ ahead, holder });
  const predecessor = `${path}/${position.predecessor.name}`;
  try {
    await waitForPredecessor({
      session,
      path: predecessor,
      deadline: queue,
      signal: options.signal,
      warn,
    });
  } catch (error) {
    if (!(error instanceof ConnectionLossError)) throw error; // the next look waits for the connection
  }
  return "wait";
}

function grant(
  { path, options, warn, telling }: Attempt,
  contender: Contender,
  { own, listing }: { own: ContenderName; listing: Listing },
): Claim {
  return new HeldClaim({
    contender,
    path: `${path}/${own.name}`,
    job: options.job,
    token: makeToken({
      era: options.era ?? 0,
      generation: generationFromCzxid(listing.stat.czxid),
      sequence: own.sequence,
    }),
    stopGraceMs: options.stopGraceMs,
    abortOnSuspended: options.abortOnSuspended ?? false,
    warn,
    telling,
  });
}

/**
 * Enters the queue; makes the claim path when it is missing, as often as somebody removes it. Where it is to be
 * protected, nobody of us enters before it is.
 */
async function enter(context: Attempt, contender: Contender): Promise<Listing | undefined> {
  const data = JSON.stringify(holderRecord(context.options.holder, context.session.clock));
  if (context.protection !== undefined) await makePath(context);
  for (;;) {
    try {
      const listing = await withinAnswer(context, contender.enter(data));
      if (listing !== undefined) return listing;
      return await look(context, contender);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error;
      await makePath(context);
    }
  }
}

/** Making a path again is harmless, so a lost reply is no more than a reason to do so. */
async function makePath(context: Attempt): Promise<void> {
  for (;;) {
    try {
      await withinAnswer(context, makeClaimPath(context));
      return;
    } catch (error) {
      if (!(error instanceof ConnectionLossError)) throw error;
      await untilUsable(context);
    }
  }
}

/** Lists again, through connection losses; undefined when our znode is not there and a new attempt is due. */
async function look(context: Attempt, contender: Contender): Promise<Listing | undefined> {
  const { session, path } = context;
  for (;;) {
    await untilUsable(context);
    try {
      if (!(await withinAnswer(context, contender.recover()))) return undefined;
      return await withinAnswer(context, session.list(path));
    } catch (error) {
      if (error instanceof NoNodeError) return undefined;
      if (!(error instanceof ConnectionLossError)) throw error;
    }
  }
}

async function leave({ session, warn }: Attempt, contender: Contender): Promise<void> {
  const removal = contender.remove();
  removal.catch((error) => warn(`our contender could not be removed: ${error}`));
  try {
    await settleWithin(removal, Deadline.after(REMOVAL_MS, session.clock));
  } catch {
    // told by the warning above; the error that brought us here is the one that counts
  }
}
