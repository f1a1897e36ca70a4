/**
 * What fencekeeper tells about itself while it works: small events on three channels of `node:diagnostics_channel`, for
 * metrics, traces and logs. No event holds a value, a token or a secret, and a channel that nobody listens to costs
 * nothing. The events say what happened; nothing may be decided by them.
 */
import { channel, subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LossReason } from "../errors.js";
import type { SessionState } from "../zookeeper/session-port.js";

/** The names of the channels, for `subscribe` of `node:diagnostics_channel`. */
export const CHANNELS = {
  sink: "fencekeeper:sink",
  claim: "fencekeeper:claim",
  session: "fencekeeper:session",
} as const;

/** A call of a sink has ended, or a fence was found to be gone (`fence`, with the outcome `lost`). */
export interface SinkEvent {
  operation: "advance" | "commit" | "invalidate" | "read" | "wait" | "fence";
  /**
   * As in the sink's answer: `committed`, `stale`… A read is `present`, `absent`, or `overwritten` where the value is
   * not the one that was committed. A wait is `found` or `timeout`. A call that threw is `unknown` when it may have
   * written, `cancelled` by the caller's signal, else `failed`.
   */
  outcome: string;
  /** In observe mode: what would have been the outcome. */
  refusal?: string;
  /** The `code` of the error that was thrown. */
  code?: string;
  /** What the key has in common with others of its kind. */
  keyPrefix: string;
  /** From the call to its end, in milliseconds; 0 for a fence. */
  durationMs: number;
}

/** A claim was asked for and granted or not, or one that was held has ended. */
export type ClaimEvent = { jobPrefix: string } & (
  | { kind: "granted"; waitMs: number }
  /** Somebody else held it for as long as we were ready to wait. */
  | { kind: "busy"; waitMs: number; ahead: number }
  /** Claiming threw; `code` is the error's, or `CANCELLED` after the caller's signal. */
  | { kind: "failed"; waitMs: number; code: string }
  | { kind: "lost"; heldMs: number; reason: LossReason }
  /** `confirmed`: its znode is known to be gone. */
  | { kind: "released"; heldMs: number; confirmed: boolean }
);

/** A ZooKeeper session has changed its state. */
export interface SessionEvent {
  /** In hexadecimal. */
  session: string;
  state: SessionState;
  previous: SessionState;
}

interface Events {
  sink: SinkEvent;
  claim: ClaimEvent;
  session: SessionEvent;
}

/** A channel as its publisher sees it. */
interface Publisher<Event> {
  readonly hasSubscribers: boolean;
  publish(event: Event): void;
}

export const sinkChannel: Publisher<SinkEvent> = channel(CHANNELS.sink);
export const claimChannel: Publisher<ClaimEvent> = channel(CHANNELS.claim);
export const sessionChannel: Publisher<SessionEvent> = channel(CHANNELS.session);

/** Calls back with each event of a channel, while it happens; gives a function that stops it. */
export function listen<Name extends keyof Events>(
  name: Name,
  listener: (event: Events[Name]) => void,
): () => void {
  const onMessage = (message: unknown) => listener(message as Events[Name]); // only we publish there
  subscribe(CHANNELS[name], onMessage);
  return () => {
    unsubscribe(CHANNELS[name], onMessage);
  };
}
