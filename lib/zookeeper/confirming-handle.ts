/**
 * A handle whose exchanges are followed, so that it is known what the server last confirmed. It runs on the thread of
 * the handle: a busy main thread does not make it forget to ask.
 */
import type { Clock } from "../clock.js";
import type { Acl } from "./access.js";
import { Confirmation, type Moment } from "./confirmation.js";
import type { ConfirmedHandle, Handle, HandleEvents, OpenHandle } from "./handle.js";
import type { CreateMode } from "./session-port.js";

export interface ConfirmingOptions {
  clock: Clock;
  /** Where the start of the last confirmed exchange is kept. Default: in the handle. */
  moment?: Moment;
}

/** Gives a way to open handles that are followed, from a way to open handles. */
export function confirming(
  open: OpenHandle<Handle>,
  options: ConfirmingOptions,
): OpenHandle<ConfirmingHandle> {
  return async (request, events) => {
    const handle = new ConfirmingHandle(options);
    const inner = await open(request, handle.noting(events));
    return inner === undefined ? undefined : handle.over(inner);
  };
}

export class ConfirmingHandle implements ConfirmedHandle {
  #inner!: Handle;
  #connected = false;
  #timeoutMs = 0;
  readonly #moment: Moment;
  readonly #confirmation: Confirmation;

  constructor({ clock, moment = { atMs: Number.NEGATIVE_INFINITY } }: ConfirmingOptions) {
    this.#moment = moment;
    this.#confirmation = new Confirmation({
      clock,
      moment,
      timeoutMs: () => this.#timeoutMs,
      // a sync goes to the leader and back, so its reply says more than that one follower still answers
      ask: () => (this.#connected ? this.sync("/") : undefined),
    });
  }

  over(inner: Handle): this {
    this.#inner = inner;
    return this;
  }

  /** The same events, noted here on their way. */
  noting(events: HandleEvents): HandleEvents {
    return {
      connected: (granted) => {
        this.#connected = true;
        this.#timeoutMs = granted.timeoutMs;
        events.connected(granted);
      },
      connecting: () => {
        this.#connected = false;
        events.connecting();
      },
      refused: () => events.refused(),
      closed: () => {
        this.end();
        events.closed();
      },
      watch: (path) => events.watch(path),
    };
  }

  get lastConfirmedAtMs(): number {
    return this.#moment.atMs;
  }

  /** The negotiated session timeout, in milliseconds; 0 before the first connect. */
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  keepConfirmed(kept: boolean): void {
    this.#confirmation.keep(kept);
  }

  /** Asks no more, and takes nothing for confirmed from now on. */
  end(): void {
    this.#connected = false;
    this.#confirmation.end();
  }

  create(path: string, data: string, mode: CreateMode) {
    return this.#confirmation.follow(this.#inner.create(path, data, mode));
  }

  exists(path: string) {
    return this.#confirmation.follow(this.#inner.exists(path));
  }

  read(path: string, watch: boolean) {
    return this.#confirmation.follow(this.#inner.read(path, watch));
  }

  list(path: string, watch: boolean) {
    return this.#confirmation.follow(this.#inner.list(path, watch));
  }

  delete(path: string) {
    return this.#confirmation.follow(this.#inner.delete(path));
  }

  sync(path: string) {
    return this.#confirmation.follow(this.#inner.sync(path));
  }

  setAcl(path: string, acl: Acl, version: number) {
    return this.#confirmation.follow(this.#inner.setAcl(path, acl, version));
  }

  close(): Promise<void> {
    this.end();
    return this.#inner.close();
  }
}
