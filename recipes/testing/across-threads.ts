/**
 * A handle that lives on one thread of a simulated process and is used from the other, as `lib/zookeeper/thread` does
 * it with real threads: orders and news are messages, and only the shared moments are seen at once.
 */

import type { Acl } from "../../lib/zookeeper/access.js";
import type { Moment } from "../../lib/zookeeper/confirmation.js";
import type { ConfirmingHandle } from "../../lib/zookeeper/confirming-handle.js";
import type {
  ConfirmedHandle,
  HandleEvents,
  HandleRequest,
  OpenHandle,
} from "../../lib/zookeeper/handle.js";
import type { CreateMode } from "../../lib/zookeeper/session-port.js";
import { StuckGuard } from "../../lib/zookeeper/thread/stuck-guard.js";
import type { SimulatedProcess } from "./simulated-process.js";

export interface AcrossThreadsOptions {
  process: SimulatedProcess;
  /** How long the user's thread may be busy, in milliseconds. */
  stuckMs: number;
}

/** We show that we are not stuck so often within that time. */
const SHOWS_PER_STUCK_TIME = 10;

export function acrossThreads(
  open: OpenHandle<ConfirmingHandle>,
  options: AcrossThreadsOptions,
): OpenHandle {
  return async (request, events) => {
    const handle = new HandleAcross(options, events);
    await handle.open(open, request);
    return handle;
  };
}

class HandleAcross implements ConfirmedHandle {
  readonly #process: SimulatedProcess;
  readonly #userSeen: Moment;
  #inner!: ConfirmingHandle;
  #guard: StuckGuard | undefined;
  #cancelShow = () => {};

  constructor(
    readonly options: AcrossThreadsOptions,
    readonly events: HandleEvents,
  ) {
    this.#process = options.process;
    this.#userSeen = { atMs: this.#process.main.nowMs() };
  }

  async open(open: OpenHandle<ConfirmingHandle>, request: HandleRequest): Promise<void> {
    const { main, sessions } = this.#process;
    const { events } = this;
    const inner = await open(request, {
      connected: (granted) => main.receive(() => events.connected(granted)),
      connecting: () => main.receive(() => events.connecting()),
      refused: () => main.receive(() => events.refused()),
      closed: () => main.receive(() => events.closed()),
      watch: (path) => main.receive(() => events.watch(path)),
    });
    this.#inner = inner as ConfirmingHandle; // a simulated client can always begin to connect
    this.#show();
    this.#guard = new StuckGuard({
      ...{ clock: sessions, handle: this.#inner, userSeen: this.#userSeen },
      stuckMs: this.options.stuckMs,
      tell: () => main.receive(() => events.closed()),
      close: () => void this.#inner.close(),
    });
  }

  get lastConfirmedAtMs(): number {
    return this.#inner.lastConfirmedAtMs;
  }

  keepConfirmed(kept: boolean): void {
    this.#process.sessions.receive(() => this.#inner.keepConfirmed(kept));
  }

  create(path: string, data: string, mode: CreateMode) {
    return this.#cross(() => this.#inner.create(path, data, mode));
  }

  exists(path: string) {
    return this.#cross(() => this.#inner.exists(path));
  }

  read(path: string, watch: boolean) {
    return this.#cross(() => this.#inner.read(path, watch));
  }

  list(path: string, watch: boolean) {
    return this.#cross(() => this.#inner.list(path, watch));
  }

  delete(path: string) {
    return this.#cross(() => this.#inner.delete(path));
  }

  sync(path: string) {
    return this.#cross(() => this.#inner.sync(path));
  }

  setAcl(path: string, acl: Acl, version: number) {
    return this.#cross(() => this.#inner.setAcl(path, acl, version));
  }

  close(): Promise<void> {
    this.#cancelShow();
    return this.#cross(() => {
      this.#guard?.end();
      return this.#inner.close();
    });
  }

  #cross<T>(ask: () => Promise<T>): Promise<T> {
    const { main, sessions } = this.#process;
    return new Promise((resolve, reject) => {
      sessions.receive(() =>
        ask().then(
          (value) => main.receive(() => resolve(value)),
          (error) => main.receive(() => reject(error)),
        ),
      );
    });
  }

  #show(): void {
    const { main } = this.#process;
    this.#userSeen.atMs = main.nowMs();
    this.#cancelShow = main.after(this.options.stuckMs / SHOWS_PER_STUCK_TIME, () => this.#show());
  }
}
