/**
 * The sessions' thread of this process. There is one for all sessions and it is never ended: the npm package
 * `zookeeper` keeps things of one thread in static variables, and crashes when a second thread loads it.
 */
import { Worker } from "node:worker_threads";
import { ConfigurationError } from "../../errors.js";
import type { HandleNews, HandleOrder, News } from "./messages.js";

/** The entry point of the thread, beside this file. */
const ENTRY = new URL("./session-thread.js", import.meta.url);

/** The native part of the package, as it is named among the files that the process has loaded. */
const NATIVE_PART = /[\\/]zookeeper[\\/].*zookeeper\.node$/;

/** One handle, as this side sees it. */
export interface HandleUser {
  hear(news: HandleNews): void;
  /** The thread has ended because of a fault. */
  threadEnded(): void;
  /** Blocks until nothing of the handle is left, or a bound has passed. */
  closeBlocking(): void;
}

export class ClientThread {
  static #only: ClientThread | undefined;
  readonly #worker: Worker;
  readonly #users = new Map<number, HandleUser>();
  #lastHandle = 0;
  #ended = false;

  private constructor() {
    // Options for this process's Node (a loader, a debugger) are not meant for the thread.
    this.#worker = new Worker(ENTRY, { execArgv: [], name: "fencekeeper sessions" });
    this.#worker.on("message", (news: News) => this.#users.get(news.handle)?.hear(news));
    this.#worker.on("error", (error) => {
      // It is told with its stack, as any uncaught error is; the sessions learn of their end by "exit".
      queueMicrotask(() => {
        throw error;
      });
    });
    this.#worker.on("exit", () => this.#onEnd());
    this.#worker.unref();
    // Node ends its threads when it exits, and aborts where a native handle is still open then.
    process.on("exit", () => {
      for (const user of this.#users.values()) user.closeBlocking();
    });
  }

  /** @throws ConfigurationError when another thread of this process has loaded the package, or ours has ended */
  static get(): ClientThread {
    if (ClientThread.#only === undefined) {
      mustNotBeLoaded();
      ClientThread.#only = new ClientThread();
    }
    if (ClientThread.#only.#ended) {
      throw new ConfigurationError(
        "the thread of the ZooKeeper sessions has ended, and a process can have only one: restart the process",
      );
    }
    return ClientThread.#only;
  }

  /** True once sessions of this process live on a thread of their own. */
  static get exists(): boolean {
    return ClientThread.#only !== undefined;
  }

  /** Takes a handle on; gives its number. The thread keeps the process alive until it is let go. */
  add(user: HandleUser): number {
    if (this.#users.size === 0) this.#worker.ref();
    this.#lastHandle += 1;
    this.#users.set(this.#lastHandle, user);
    return this.#lastHandle;
  }

  letGo(handle: number): void {
    if (this.#users.delete(handle) && this.#users.size === 0) this.#worker.unref();
  }

  order(handle: number, order: HandleOrder): void {
    this.#worker.postMessage({ handle, ...order });
  }

  #onEnd(): void {
    this.#ended = true;
    for (const user of [...this.#users.values()]) user.threadEnded();
    this.#users.clear();
  }
}

/** @throws ConfigurationError when the native part of the package is loaded in this process */
export function mustNotBeLoaded(): void {
  if (!loadedFiles().some((file) => NATIVE_PART.test(file))) return;
  throw new ConfigurationError(
    "another thread of this process has loaded the npm package `zookeeper`, which works in one thread only: " +
      'give `thread: "caller"` to every ZooKeeper, and use them on that thread',
  );
}

function loadedFiles(): string[] {
  // Typed as text only; the report is an object with the files of all threads.
  const report = process.report?.getReport() as unknown as { sharedObjects?: string[] };
  return report?.sharedObjects ?? [];
}
