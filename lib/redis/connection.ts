/**
 * The connection to Redis, and the only file that imports `ioredis`. It makes one attempt at a time and tells whether
 * a request was answered, was never sent, or was sent and lost; it repeats nothing.
 */
import { Redis } from "ioredis";
import { type Clock, systemClock } from "../clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../deadline.js";
import { FencekeeperError, OptionError, SinkUnreachableError } from "../errors.js";
import type { Attempt, CommandRequest, Limits, ScriptRequest } from "./attempt.js";
import { commandOf, isFromServer, isNeverSent, plainError } from "./client-error.js";
import { parseRedisUrl, type RedisAddress } from "./redis-url.js";
import { SCRIPT_NAMES, scriptText } from "./script-files.js";
import { databaseError, errorFromServer, isPassing, serverCode } from "./server-error.js";

export interface ConnectionOptions {
  /** `redis://` or `rediss://`. */
  url: string;
  /** How long a TCP or TLS connect may take. */
  connectTimeoutMs: number;
  /** How long the server may be silent while a reply is due, before the connection is given up for a new one. */
  replyTimeoutMs: number;
  /** How people see the connection in `CLIENT LIST`. */
  name: string;
  clock?: Clock;
}

/** How long the server may take to say goodbye, and its socket to close. */
const QUIT_TIMEOUT_MS = 500;
const DISCONNECT_TIMEOUT_MS = 100;

type ScriptCall = (keyCount: number, ...keysAndArguments: (string | Buffer)[]) => Promise<unknown>;

export class RedisConnection {
  /** `host:port`, for messages. */
  readonly place: string;
  readonly #address: RedisAddress;
  readonly #redis: Redis;
  readonly #clock: Clock;
  #connecting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** True from a connect that succeeded, in the right database, to the start of the next one. */
  #usable = false;
  /** The first fault of the connect under way; ioredis tells it through its event only. */
  #connectFault: Error | undefined;

  constructor(options: ConnectionOptions) {
    if (!/^[!-~]{1,64}$/.test(options.name)) {
      throw new OptionError("name must be 1 to 64 visible ASCII characters, without spaces");
    }
    this.#address = parseRedisUrl(options.url);
    this.place = `${this.#address.host}:${this.#address.port}`;
    this.#clock = options.clock ?? systemClock;
    this.#redis = makeClient(this.#address, options);
    this.#redis.on("error", (error) => {
      this.#connectFault ??= error;
    });
  }

  /** Runs a script or a command once. The deadline and the signal end the wait, not what was sent. */
  async run(
    request: ScriptRequest | CommandRequest,
    { deadline, signal }: Limits,
  ): Promise<Attempt> {
    if (this.#closing) return closed();
    try {
      const opened = this.#isReady || (await settleWithin(this.#connect(), deadline, signal));
      if (opened === TIMED_OUT || deadline.passed) {
        const fault = this.#connectFault ?? new Error("the deadline passed");
        return { kind: "unsent", cause: plainError(fault, this.#address.password) };
      }
    } catch (error) {
      return this.#failed({ error, otherwise: "unsent", signal });
    }
    if (this.#closing) return closed();
    try {
      const reply = await settleWithin(this.#call(request), deadline, signal);
      if (reply === TIMED_OUT) return { kind: "lost", cause: new Error("no reply came in time") };
      return { kind: "reply", reply };
    } catch (error) {
      return this.#failed({ error, otherwise: isNeverSent(error) ? "unsent" : "lost", signal });
    }
  }

  /** Ends the connection in bounded time, whatever the server does. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  get #isReady(): boolean {
    return this.#usable && this.#redis.status === "ready";
  }

  /** One connect at a time, shared by all who wait for it. */
  #connect(): Promise<void> {
    this.#connecting ??= this.#connectOnce().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #connectOnce(): Promise<void> {
    this.#usable = false;
    this.#connectFault = undefined;
    try {
      await this.#redis.connect();
    } catch (error) {
      throw this.#connectFault ?? error;
    }
    // ioredis only reports a refused SELECT and goes on in database 0, where our keys must not be looked for.
    const fault: Error | undefined = this.#connectFault;
    if (fault !== undefined) {
      this.#redis.disconnect(true);
      throw commandOf(fault) === "select"
        ? databaseError(this.#address.database, plainError(fault, this.#address.password))
        : fault;
    }
    this.#usable = true;
  }

  #call(request: ScriptRequest | CommandRequest): Promise<unknown> {
    if ("command" in request) return this.#redis.callBuffer(request.command, request.values);
    // defineCommand adds methods that the types of ioredis do not know; "Buffer" asks for binary replies.
    const commands = this.#redis as unknown as Record<string, ScriptCall>;
    const call = commands[`${request.script}Buffer`] as ScriptCall;
    return call.call(this.#redis, request.keys.length, ...request.keys, ...request.values);
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
    const passing = isPassing(cause.message);
    return { kind: "refused", error: errorFromServer(cause), passing };
  }

  async #end(): Promise<void> {
    if (this.#redis.status === "ready") {
      const deadline = Deadline.after(QUIT_TIMEOUT_MS, this.#clock);
      await settleWithin(this.#redis.quit(), deadline).catch(() => {}); // it has gone before we said goodbye
    }
    if (this.#redis.status === "end") return;
    const ended = new Promise<void>((resolve) => this.#redis.once("end", resolve));
    this.#redis.disconnect();
    await settleWithin(ended, Deadline.after(2 * DISCONNECT_TIMEOUT_MS, this.#clock));
  }
}

function closed(): Attempt {
  const error = new SinkUnreachableError("the sink has been closed");
  return { kind: "refused", error, passing: false };
}

function makeClient(address: RedisAddress, options: ConnectionOptions): Redis {
  const client = new Redis({
    host: address.host,
    port: address.port,
    db: address.database,
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.tls && { tls: {} }),
    connectionName: options.name,
    connectTimeout: options.connectTimeoutMs,
    socketTimeout: options.replyTimeoutMs,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    lazyConnect: true,
    // Nothing is ever queued or sent again behind our back: a request is written now, under its caller's deadline,
    // or never. Reconnecting is up to the callers, so a server that is down or refuses us is left alone in between.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    // LOADING is answered to the scripts themselves, which needs no right to run INFO.
    enableReadyCheck: false,
    // A replica that was the primary: the next connect finds the new one by its name.
    reconnectOnError: (error) => serverCode(error.message) === "READONLY",
  });
  for (const name of SCRIPT_NAMES) {
    client.defineCommand(name, { lua: scriptText(name) });
  }
  return client;
}
