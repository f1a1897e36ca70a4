/**
 * Goal: claims and sessions tell what becomes of them. Method: the recipe on sessions that a test makes up, and a clock
 * moved by hand.
 */
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { type ClaimEvent, listen, type SessionEvent } from "../../lib/telemetry/channels.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import { HandleSession } from "../../lib/zookeeper/session.js";
import type { SessionState } from "../../lib/zookeeper/session-port.js";
import { type Claim, type ClaimOptions, claim } from "../../recipes/claim.js";
import { HandClock } from "../support/hand-clock.js";
import { HandMadeSession } from "../support/hand-made-session.js";

/** Its create takes half a second, and a test ends it. */
class WatchedSession extends HandMadeSession {
  tellState: (state: SessionState) => void = () => {};

  constructor(clock: HandClock) {
    super("0000000003");
    const create = this.create.bind(this);
    this.create = async (...request) => {
      clock.move(500);
      return create(...request);
    };
    this.onState = (listener?: (state: SessionState) => void) => {
      this.tellState = listener ?? this.tellState;
      return () => {};
    };
  }
}

let clock: HandClock;
let session: WatchedSession;
let events: ClaimEvent[];

beforeEach(() => {
  clock = new HandClock();
  session = new WatchedSession(clock);
  events = [];
  onTestFinished(listen("claim", (event) => events.push(event)));
});

const claimWith = (options: Partial<ClaimOptions> = {}) =>
  claim({
    zookeeper: { clock, session: async () => session },
    job: "invoices:2024",
    ...options,
  });

async function granted(): Promise<Claim> {
  const answer = await claimWith();
  if (answer.outcome !== "granted") throw new Error(`the claim is ${answer.outcome}`);
  return answer.claim;
}

describe("a claim that tells", () => {
  it("tells its grant with the wait, and its release with the time for which it was held", async () => {
    const held = await granted();
    clock.move(2_000);
    await held.release();
    await held.release();
    expect(events).toEqual([
      { kind: "granted", jobPrefix: "invoices", waitMs: 500 },
      { kind: "released", jobPrefix: "invoices", heldMs: 2_000, confirmed: true },
    ]);
  });

  it("tells a loss once, with its reason, and no release after it", async () => {
    const held = await granted();
    clock.move(700);
    session.tellState("LOST");
    expect(await held.release()).toBe("lost");
    expect(events.slice(1)).toEqual([
      { kind: "lost", jobPrefix: "invoices", heldMs: 700, reason: "expired" },
    ]);
  });

  it("tells that somebody else holds it, and how many are ahead", async () => {
    session.nodes.add(`${claimPath("invoices:2024")}/_c_${randomUUID()}-lock-0000000001`);
    expect(await claimWith()).toMatchObject({ outcome: "busy" });
    expect(events).toEqual([{ kind: "busy", jobPrefix: "invoices", waitMs: 500, ahead: 1 }]);
  });

  it("tells why it could not be claimed, and that its caller cancelled it", async () => {
    const source = { clock, session: () => Promise.reject(new OptionError("no session")) };
    await expect(claimWith({ zookeeper: source })).rejects.toThrow("no session");
    const reason = new Error("changed my mind");
    const signal = AbortSignal.abort(reason);
    const cancelled = { clock, session: () => Promise.reject(reason) };
    await expect(claimWith({ zookeeper: cancelled, signal })).rejects.toBe(reason);
    expect(events).toMatchObject([
      { kind: "failed", code: "OPTION_INVALID" },
      { kind: "failed", code: "CANCELLED" },
    ]);
  });

  it("has the prefix that the caller's function gives", async () => {
    await claimWith({ jobPrefixOf: (job) => job.slice(0, 3) });
    expect(events).toMatchObject([{ kind: "granted", jobPrefix: "inv" }]);
  });
});

it("a session tells each change of its state, and nothing when it never had a connection", async () => {
  const told: SessionEvent[] = [];
  onTestFinished(listen("session", (event) => told.push(event)));
  await new HandleSession(clock).close();
  expect(told).toEqual([]);
  const connected = new HandleSession(clock);
  connected.handleEvents.connected({ sessionId: "1f", timeoutMs: 10_000 });
  connected.handleEvents.connecting();
  connected.handleEvents.connected({ sessionId: "1f", timeoutMs: 10_000 });
  connected.handleEvents.connected({ sessionId: "2f", timeoutMs: 10_000 });
  await connected.close();
  expect(told.map(({ state, previous }) => `${previous} to ${state}`)).toEqual([
    "SUSPENDED to CONNECTED",
    "CONNECTED to SUSPENDED",
    "SUSPENDED to CONNECTED",
    "CONNECTED to LOST",
  ]);
  expect(new Set(told.map((event) => event.session))).toEqual(new Set(["1f"]));
});
