/**
 * The connection to Redis. It makes one attempt at a time and tells whether a request was answered, was never sent, or
 * was sent and lost; it repeats nothing. A server that takes the place of another is told of before it gets anything.
 */
import { type Clock, systemClock } from "../clock.js";
import { settleWithin, TIMED_OUT } from "../deadline.js";
import { FencekeeperError, OptionError, SinkUnreachableError } from "../errors.js";
import { type TlsOptions, tlsIdentityOf } from "../tls/tls-options.js";
import type { Asked } from "./ask.js";
import type { Attempt, CommandRequest, Limits, ScriptRequest, ScriptValues } from "./attempt.js";
import type { RouteOptions } from "./client/client-options.js";
import { ClusterRoute } from "./client/cluster-route.js";
import type { Node, Route } from "./client/route.js";
import { ServerRoute } from "./client/server-route.js";
import { isFromServer, isNeverSent, plainError } from "./client-error.js";
import { parseRedisUrl, type RedisAddress } from "./redis-url.js";
import { errorFromServer, isPassing, isRedirection, isReplica } from "./server-error.js";
import { serverIdentity } from "./server-identity.js";

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

type ScriptCall = (keyCount: number, ...keysAndArguments: (string | Buffer)[]) => Promise<unknown>;

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

  /** Once anything was answered: for each server that takes writes, a key that it has. One, unless it is a cluster. */
  get keyOfEach(): string[] {
    return this.#route.keyOfEach();
  }

  /** Ends the connection in bounded time, whatever the server does. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= this.#route.end();
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
      const reply = await settleWithin(this.#call(node, request), deadline, signal);
      if (reply === TIMED_OUT) {
        this.#route.doubt(key);
        return { kind: "lost", cause: new Error("no reply came in time") };
      }
      if (!("wait" in request) || request.wait === undefined) return { kind: "reply", reply };
      // It waits for what was written on this very connection.
      const { command, values } = request.wait;
      const isSame = node.stream === stream && node.status === "ready";
      const waiting = isSame ? node.call(command, values) : Promise.resolve(undefined);
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

  async #call(node: Node, request: Request): Promise<unknown> {
    if ("command" in request) return node.callBuffer(request.command, request.values);
    const { script, keys, stage } = request;
    // Scripts are methods that the types of ioredis do not know; "Buffer" asks for binary replies.
    const commands = node as unknown as Record<string, ScriptCall>;
    const call = (values: ScriptValues) =>
      (commands[`${script}Buffer`] as ScriptCall).call(node, keys.length, ...keys, ...values);
    if (stage === undefined) {
      return call(Array.isArray(request.values) ? request.values : await request.values);
    }
    const staging = node.callBuffer("SET", [stage.key, stage.value, "PX", String(stage.ttlMs)]);
    const calling = Promise.resolve(request.values).then(call);
    const [staged, reply] = await Promise.allSettled([staging, calling]);
    if (reply.status === "fulfilled") {
      // Refused before it came to the value: the script's answer counts. Else say why the value is not there.
      const isUnstaged = String((reply.value as Buffer[])[0]) === "unstaged";
      if (!isUnstaged || staged.status === "fulfilled") return reply.value;
    }
    throw reply.status === "rejected" ? reply.reason : (staged as PromiseRejectedResult).reason;
  }

  #failed(failure: {
    error: unknown;
    otherwise: "unsent" | "lost";
    signal: AbortSignal | undefined;
  }): Attempt {
    const { error, otherwise, signal } = failure;
    const cause = plainError(error, this.#address.password);
    if (signal?.aborted && error === signal.reason) return { kind: otherwise, cause };
    if (error instanceof FencekeeperError) return { kind: "refused", error, passing: false };
    if (!isFromServer(error)) return { kind: otherwise, cause };
    const { message } = cause;
    const isElsewhere = this.isCluster || this.#address.primaryName !== undefined;
    const passing = isPassing(message) || isRedirection(message);
    const error_ = errorFromServer(cause);
    return {
      kind: "refused",
      error: error_,
      passing: passing || (isElsewhere && isReplica(message)),
    };
  }
}

function keyOf(request: Request): string {
  if ("script" in request) return request.keys[0] ?? "";
  return request.at ?? String(request.values[0] ?? "");
}

function closed(): Attempt {
  const error = new SinkUnreachableError("the sink has been closed");
  return { kind: "refused", error, passing: false };
}
