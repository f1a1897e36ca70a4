/**
 * The keys that are watched on one server, by its own client-side caching: once a key was asked for on one connection,
 * its next change is told on another one that listens. The two live while anything is watched, and are shared by all
 * who watch.
 *
 *   asking ── TYPE key ──────────────> server     now the server remembers the key
 *   listening <── invalidate [key] ──  server     it has changed, and is forgotten: asked for again, then told
 */
import type { Clock } from "../clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import type { Node } from "./client/route.js";
import { isFromServer } from "./client-error.js";
import { watchError } from "./server-error.js";
import { serverIdentity } from "./server-identity.js";
import type { Watcher } from "./watcher.js";

const CHANNEL = "__redis__:invalidate";

export interface WatchedServerOptions {
  /** Connected to the server; the two connections are made like it. */
  node: Node;
  clock: Clock;
  /** How long the server may be silent. */
  replyTimeoutMs: number;
  /** What of the server a key belongs to and may be taken away without a word: its slot in a cluster. */
  partOf: (key: string) => number;
  onEnd: () => void;
}

export class WatchedServer {
  readonly #options: WatchedServerOptions;
  readonly #asking: Node;
  readonly #listening: Node;
  readonly #opened: Promise<void>;
  readonly #watchers = new Map<string, Set<Watcher>>();
  #cancelCheck = () => {};
  #fault: Error | undefined;
  #ended = false;

  constructor(options: WatchedServerOptions) {
    this.#options = options;
    const { node } = options;
    const once = { retryStrategy: () => null, enableOfflineQueue: false, readOnly: false };
    this.#asking = node.duplicate(once);
    // Under RESP 3 the client would be told in a way that it does not hand on.
    this.#listening = node.duplicate({ ...once, protocol: 2 });
    for (const connection of [this.#asking, this.#listening]) {
      connection.on("error", (error) => {
        this.#fault ??= error;
      });
      connection.on("close", () => this.end());
    }
    this.#listening.on("messageBuffer", (_channel, names) => this.#invalidate(names));
    this.#opened = this.#open();
  }

  /** Gives a function that ends the watch. What it throws is for {@link plainError}. */
  async watch(key: string, watcher: Watcher): Promise<() => void> {
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(watcher));
    const stop = () => this.#remove(key, watcher);
    try {
      await this.#opened;
      await this.#ask(key);
      if (this.#ended) throw new Error("the connection was closed");
      return stop;
    } catch (error) {
      stop();
      throw error;
    }
  }

  /** Ends both connections, and tells all who watch. Safe to call again. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelCheck();
    this.#options.onEnd();
    this.#asking.disconnect();
    this.#listening.disconnect();
    for (const watchers of this.#watchers.values()) for (const each of watchers) each.lost();
  }

  async #open(): Promise<void> {
    const [asking, listening] = [this.#asking, this.#listening];
    try {
      await Promise.all([asking.connect(), listening.connect()]);
      // Sentinels or a balancer may have led them apart, and the number of a client means another one elsewhere.
      const all = await Promise.all([this.#options.node, asking, listening].map(serverIdentity));
      if (new Set(all).size > 1) throw new Error("the connections lead to several servers");
      const id = await listening.client("ID");
      await listening.subscribe(CHANNEL);
      await asking.call("CLIENT", "TRACKING", "ON", "REDIRECT", id);
    } catch (error) {
      this.end();
      throw isFromServer(error) ? watchError(error as Error) : (this.#fault ?? error);
    }
    this.#checkLater();
  }

  /** From the reply on, the next change of the key is told. */
  #ask(key: string): Promise<unknown> {
    return this.#asking.type(key);
  }

  /** What has changed: names of keys, or all of them after a flush. */
  #invalidate(names: unknown): void {
    const isTold = Array.isArray(names) ? new Set(names.map(String)) : this.#watchers;
    for (const key of this.#watchers.keys()) {
      if (isTold.has(key)) void this.#renew(key);
    }
  }

  async #renew(key: string): Promise<void> {
    try {
      await this.#ask(key);
    } catch {
      this.end(); // whoever watches looks again, and is told there what is wrong
    }
    for (const watcher of this.#watchers.get(key) ?? []) watcher.changed();
  }

  #remove(key: string, watcher: Watcher): void {
    const watchers = this.#watchers.get(key);
    if (!watchers?.delete(watcher)) return;
    if (watchers.size === 0) this.#watchers.delete(key);
    if (this.#watchers.size === 0) this.end();
  }

  #checkLater(): void {
    if (this.#ended) return;
    const { clock, replyTimeoutMs } = this.#options;
    this.#cancelCheck = clock.after(replyTimeoutMs, () => void this.#check());
  }

  /**
   * Whether both connections still lead anywhere, and the keys are still there: a network that is cut, a frozen server
   * and a slot that was moved say nothing. It does not look for results.
   */
  async #check(): Promise<void> {
    const { clock, replyTimeoutMs, partOf } = this.#options;
    const keys = new Map(Array.from(this.#watchers.keys(), (key) => [partOf(key), key]));
    const heard = this.#listening.ping().catch((error: unknown) => {
      if (!isFromServer(error)) throw error; // else it may not ping, but was answered
    });
    const asked = Array.from(keys.values(), (key) => this.#ask(key));
    const deadline = Deadline.after(replyTimeoutMs, clock);
    const answered = settleWithin(Promise.all([heard, ...asked]), deadline);
    if ((await answered.catch(() => TIMED_OUT)) === TIMED_OUT) this.end();
    else this.#checkLater();
  }
}
