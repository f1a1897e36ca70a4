/**
 * A handle on the sessions' thread, used from this one. The native client pings from the thread it runs on; there, a
 * busy loop in somebody's handler does not cost the session. A stopped process still loses it, with all its threads.
 */
import { systemClock } from "../../clock.js";
import { Deadline, settleWithin } from "../../deadline.js";
import { NativeClientError } from "../../errors.js";
import type { Acl } from "../access.js";
import type { ConfirmedHandle, HandleEvents, HandleRequest, OpenHandle } from "../handle.js";
import { requestError, ZK } from "../request-error.js";
import type { CreateMode, Stat } from "../session-port.js";
import { ClientThread, type HandleUser } from "./client-thread.js";
import type { Answer, HandleNews, HandleOrder, Operation } from "./messages.js";
import { SharedState } from "./shared-state.js";

/** How long a close waits; the client itself takes 1.5 seconds at most. */
const CLOSE_MS = 3_000;

/** We show that we are not stuck this often, or more often where less time is allowed. */
const SHOW_MS = 1_000;

export interface ThreadOptions {
  /** See `ZooKeeperOptions.stuckMs`. */
  stuckMs: number;
}

/** Opens handles on the sessions' thread. */
export function threaded({ stuckMs }: ThreadOptions): OpenHandle {
  return (request, events) => new ThreadedHandle(events).open(request, stuckMs);
}

interface Pending {
  operation: Operation;
  path: string;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

class ThreadedHandle implements ConfirmedHandle, HandleUser {
  readonly #thread = ClientThread.get();
  readonly #number: number;
  readonly #shared = new SharedState();
  readonly #pending = new Map<number, Pending>();
  readonly #opened = deferred<boolean>();
  readonly #ended = deferred<void>();
  #showing: NodeJS.Timeout | undefined;
  #lastId = 0;
  #closing: Promise<void> | undefined;

  constructor(readonly events: HandleEvents) {
    this.#number = this.#thread.add(this);
  }

  async open(request: HandleRequest, stuckMs: number): Promise<this | undefined> {
    const show = () => {
      this.#shared.userSeen.atMs = systemClock.nowMs();
    };
    show();
    this.#showing = setInterval(show, Math.min(SHOW_MS, stuckMs / 10)).unref();
    this.#order({ do: "open", request, shared: this.#shared.buffer, stuckMs });
    try {
      if (await this.#opened.promise) return this;
    } catch (error) {
      await this.close();
      throw error;
    }
    await this.close();
    return undefined;
  }

  get lastConfirmedAtMs(): number {
    return this.#shared.confirmed.atMs;
  }

  keepConfirmed(kept: boolean): void {
    this.#order({ do: "keepConfirmed", kept });
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    return this.#ask("create", path, data, mode);
  }

  exists(path: string): Promise<Stat> {
    return this.#ask("exists", path);
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }> {
    return this.#ask("read", path, watch);
  }

  list(path: string, watch: boolean): Promise<{ children: string[]; stat: Stat }> {
    return this.#ask("list", path, watch);
  }

  delete(path: string): Promise<void> {
    return this.#ask("delete", path);
  }

  sync(path: string): Promise<void> {
    return this.#ask("sync", path);
  }

  setAcl(path: string, acl: Acl, version: number): Promise<void> {
    return this.#ask("setAcl", path, acl, version);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  closeBlocking(): void {
    this.#order({ do: "close" });
    this.#shared.waitUntilClosed(CLOSE_MS);
  }

  hear(news: HandleNews): void {
    if (news.is === "connected") this.events.connected(news);
    else if (news.is === "connecting") this.events.connecting();
    else if (news.is === "refused") this.events.refused();
    else if (news.is === "closed") this.events.closed();
    else if (news.is === "watch") this.events.watch(news.path);
    else if (news.is === "opened") this.#opened.resolve(news.usable);
    else if (news.is === "failed") this.#opened.reject(new NativeClientError(news.message));
    else if (news.is === "ended") this.#end();
    else this.#settle(news);
  }

  threadEnded(): void {
    this.#opened.resolve(false);
    this.#end();
  }

  async #close(): Promise<void> {
    this.#order({ do: "close" });
    await settleWithin(this.#ended.promise, Deadline.after(CLOSE_MS, systemClock));
    this.#rejectPending();
  }

  #order(order: HandleOrder): void {
    this.#thread.order(this.#number, order);
  }

  #ask<T>(operation: Operation, path: string, ...args: unknown[]): Promise<T> {
    if (this.#closing !== undefined) {
      return Promise.reject(requestError(operation, path, ZK.closing, "closed"));
    }
    return new Promise<T>((resolve, reject) => {
      this.#lastId += 1;
      const settle = resolve as (value: unknown) => void; // the other side gives what this operation gives
      this.#pending.set(this.#lastId, { operation, path, resolve: settle, reject });
      this.#order({ do: "request", id: this.#lastId, operation, args: [path, ...args] });
    });
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined) return; // we are closed, and it has been told so
    this.#pending.delete(answer.id);
    const { operation, path } = pending;
    if (answer.is === "value") pending.resolve(answer.value);
    else if (answer.is === "bug") pending.reject(new Error(answer.message));
    else {
      const error = requestError(operation, path, answer.code, "");
      error.message = answer.message;
      pending.reject(error);
    }
  }

  /** Nothing of the handle is left: it was closed, or its user's thread was stuck, or the sessions' thread ended. */
  #end(): void {
    clearInterval(this.#showing);
    this.#thread.letGo(this.#number);
    this.#rejectPending();
    this.events.closed();
    this.#ended.resolve();
  }

  #rejectPending(): void {
    for (const { operation, path, reject } of this.#pending.values()) {
      reject(requestError(operation, path, ZK.closing, "closed"));
    }
    this.#pending.clear();
  }
}

interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

function deferred<T>(): Deferred<T> {
  let settle: Omit<Deferred<T>, "promise"> = { resolve: () => {}, reject: () => {} };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}
