/**
 * The connection to Redis. It makes one attempt at a time and tells whether a request was answered, was never sent, or
 * was sent and lost; it repeats nothing. A server that takes the place of another is told of before it gets anything.
 */
import { type Clock, systemClock } from "../clock.js";
import { settleWithin, TIMED_OUT } from "../deadline.js";
import { FencekeeperError, OptionError, SinkUnreachableError } from "../errors.js";
import { type TlsOptions, tlsIdentityOf } from "../tls/tls-options.js";
import type { Asked } from "./ask.js";
import type { Attempt, CommandRequest, Failure, Limits, ScriptRequest } from "./attempt.js";
import type { RouteOptions } from "./client/client-options.js";
import { ClusterRoute } from "./client/cluster-route.js";
import type { Node, Route, ServerPlace } from "./client/route.js";
import { ServerRoute } from "./client/server-route.js";
import { isFromServer, isNeverSent, plainError } from "./client-error.js";
import { parseRedisUrl, type RedisAddress } from "./redis-url.js";
import { sendRequest } from "./send-request.js";
import { errorFromServer, isPassing, isRedirection, isReplica } from "./server-error.js";
import { serverIdentity } from "./server-identity.js";
import { SharedWaits } from "./shared-waits.js";
import { WatchedServers } from "./watched-servers.js";
import type { Watcher, Watching } from "./watcher.js";

export interface ConnectionOptions {
  /** `redis://`, `redis-sentinel://` or `redis-cluster://`, or the same with `rediss`. */
  url: string;
  /** How long a TCP or TLS connect may take. */
  connectTimeoutMs: number;
  /** How long the server may be silent while a reply is due, before the connection is given up for a new one. */
  replyTimeoutMs: number;
  /** How people see the connection in `CLIENT LIST`. */
  name: string;
  /** Of the server, where it is not in the address. */
  password?: string | undefined;
  tls?: TlsOptions | undefined;
  /** Of the sentinels. */
  sentinelPassword?: string | undefined;
  natMap?: RouteOptions["natMap"];
  /**
   * Called when another server, or the same one after a restart, has taken the place of the last one, before anything
   * is sent to it. What it asks for goes over the connection that it is given.
   */
  onOtherServer?: (connection: Asked<Request>) => Promise<void>;
  clock?: Clock;
}

type Request = ScriptRequest | CommandRequest;

export class RedisConnection implements Asked<Request> {
  readonly place: string;
  readonly isCluster: boolean;
  readonly #options: ConnectionOptions;
  readonly #address: RedisAddress;
  readonly #route: Route;
  readonly #clock: Clock;
  /** By socket: what is done on it before anything else. */
  readonly #greetings = new WeakMap<object, Promise<void>>();
  readonly #greeted = new WeakSet<object>();
  readonly #watched: WatchedServers;
  readonly #waits = new SharedWaits();
  #closing: Promise<void> | undefined;

  constructor(options: ConnectionOptions) {
    if (!/^[!-~]{1,64}$/.test(options.name)) {
      throw new OptionError("name must be 1 to 64 visible ASCII characters, without spaces");
    }
    const { password, sentinelPassword, natMap } = options;
    this.#options = options;
    this.#address = {
      ...parseRedisUrl(options.url, password),
      ...(sentinelPassword !== undefined && { sentinelPassword }),
    };
    this.#clock = options.clock ?? systemClock;
    this.isCluster = this.#address.isCluster;
    const tls = options.tls && tlsIdentityOf(options.tls);
    if (tls !== undefined && !this.#address.tls) {
      throw new OptionError(
        "certificates are for an address under TLS: write rediss for redis in it",
      );
    }
    const { connectTimeoutMs, replyTimeoutMs, name } = options;
    const route = { address: this.#address, connectTimeoutMs, replyTimeoutMs, name, tls, natMap };
    this.#route = new (this.isCluster ? ClusterRoute : ServerRoute)(route, this.#clock);
    this.place = this.#route.place;
    const { isCluster } = this;
    this.#watched = new WatchedServers({ clock: this.#clock, replyTimeoutMs, isCluster });
  }

  /** Runs a script or a command once. The deadline and the signal end the wait, not what was sent. */
  async run(request: Request, limits: Limits): Promise<Attempt> {
    const { deadline, signal } = limits;
    if (this.#closing) return closed();
    const key = keyOf(request);
    let node = this.#route.ready(key);
    try {
      if (node === undefined) {
        await settleWithin(this.#route.connect(key), deadline, signal);
        node = this.#route.ready(key);
      }
      if (node !== undefined && !this.#greeted.has(node.stream)) {
        const greeted = await settleWithin(this.#greet(node), deadline, signal);
        if (greeted === TIMED_OUT) node = undefined;
      }
      if (node === undefined || deadline.passed) {
        const fault = this.#route.fault ?? new Error(this.#late);
        return { kind: "unsent", cause: plainError(fault, this.#address.password) };
      }
    } catch (error) {
      this.#route.doubt(key);
      return this.#failed({ error, otherwise: "unsent", signal });
    }
    if (this.#closing) return closed();
    return this.#send(node, request, limits);
  }

  /** Once anything was answered: the servers that take writes. One, unless it is a cluster. */
  get servers(): ServerPlace[] {
    return this.#route.servers();
  }

  /** Watches a key on the server that has it. Something must have been read there before: it does not connect. */
  async watch(key: string, watcher: Watcher, limits: Limits): Promise<Watching> {
    if (this.#closing) return closed();
    const node = this.#route.ready(key);
    if (node === undefined) return { kind: "unsent", cause: new Error("there is no connection") };
    try {
      const stop = await this.#watched.watch({ node, key, watcher }, limits);
      if (stop !== undefined) return { kind: "watching", stop };
      return { kind: "unsent", cause: new Error("the deadline passed") };
    } catch (error) {
      const { signal } = limits;
      if (!signal?.aborted) this.#route.doubt(key);
      return this.#failed({ error, otherwise: "unsent", signal });
    }
  }

  /** Ends the connection in bounded time, whatever the server does. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= this.#route.end();
    this.#watched.end();
    return this.#closing;
  }

  /** What is said of a connect of which nothing was heard. */
  get #late(): string {
    const words = "the deadline passed";
    return this.#address.tls ? `${words}; does the server speak TLS at this port?` : words;
  }

  /** Once for each socket, and shared by all who want to use it. */
  #greet(node: Node): Promise<void> {
    const { stream } = node;
    const greeting = this.#greetings.get(stream) ?? this.#welcome(node);
    this.#greetings.set(stream, greeting);
    return greeting;
  }

  async #welcome(node: Node): Promise<void> {
    const { stream } = node;
    try {
      const { onOtherServer } = this.#options;
      const identity = onOtherServer && (await serverIdentity(node));
      if (onOtherServer && identity !== undefined && this.#route.replaces(identity)) {
        const run = (request: Request, limits: Limits) => this.#send(node, request, limits);
        await onOtherServer({ place: this.place, run });
      }
      this.#greeted.add(stream);
    } catch (error) {
      this.#greetings.delete(stream);
      throw error;
    }
  }

  async #send(node: Node, request: Request, limits: Limits): Promise<Attempt> {
    const { deadline, signal } = limits;
    const { stream } = node;
    const key = keyOf(request);
    try {
      const reply = await settleWithin(sendRequest(node, request), deadline, signal);
      if (reply === TIMED_OUT) {
        this.#route.doubt(key);
        return { kind: "lost", cause: new Error("no reply came in time") };
      }
      if (!("wait" in request) || request.wait === undefined) return { kind: "reply", reply };
      const waiting = this.#waits.send(request.wait, { node, stream });
      // what was reached is not known then
      const waited = await settleWithin(waiting, deadline, signal).catch(() => undefined); // as said
      return { kind: "reply", reply, waited: waited === TIMED_OUT ? undefined : waited };
    } catch (error) {
      const { redirected } = this.#route;
      const isMoved = isFromServer(error) && isRedirection((error as Error).message);
      if (isMoved || !isFromServer(error)) this.#route.doubt(key);
      if (isMoved && redirected !== undefined && node !== redirected) {
        return this.#send(redirected, request, limits);
      }
      return this.#failed({ error, otherwise: isNeverSent(error) ? "unsent" : "lost", signal });
    }
  }

  #failed(failure: {
    error: unknown;
    otherwise: "unsent" | "lost";
    signal: AbortSignal | undefined;
  }): Failure {
    const { error, otherwise, signal } = failure;
    const cause = plainError(error, this.#address.password);
    if (signal?.aborted && error === signal.reason) return { kind: otherwise, cause };
    if (error instanceof FencekeeperError) return { kind: "refused", error, passing: false };
    if (!isFromServer(error)) return { kind: otherwise, cause };
    const { message } = cause;
    const isElsewhere = this.isCluster || this.#address.primaryName !== undefined;
    const passing = isPassing(message) || isRedirection(message);
    const isNoPrimary = isElsewhere && isReplica(message);
    return { kind: "refused", error: errorFromServer(cause), passing: passing || isNoPrimary };
  }
}

function keyOf(request: Request): string {
  if ("script" in request) return request.keys[0] ?? "";
  return request.at ?? String(request.values[0] ?? "");
}

function closed(): Failure {
  const error = new SinkUnreachableError("the sink has been closed");
  return { kind: "refused", error, passing: false };
}
