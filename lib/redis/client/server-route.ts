/**
 * The way to one server, at an address or where sentinels say that the primary is.
 */
import { Redis } from "ioredis";
import { type Clock, systemClock } from "../../clock.js";
import { Deadline, settleWithin } from "../../deadline.js";
import { commandOf, plainError } from "../client-error.js";
import { databaseError, serverCode } from "../server-error.js";
import {
  clientOptions,
  DISCONNECT_TIMEOUT_MS,
  QUIT_TIMEOUT_MS,
  type RouteOptions,
} from "./client-options.js";
import type { Node, Route, ServerPlace } from "./route.js";
import { tlsErrorOf } from "./tls-probe.js";

export class ServerRoute implements Route {
  readonly place: string;
  readonly redirected = undefined;
  readonly #redis: Redis;
  #connecting: Promise<void> | undefined;
  /** True from a connect that succeeded, in the right database, to the start of the next one. */
  #usable = false;
  #fault: Error | undefined;
  #lastIdentity: string | undefined;

  constructor(
    readonly options: RouteOptions,
    readonly clock: Clock = systemClock,
  ) {
    const { hosts } = options.address;
    this.place = hosts.map(({ host, port }) => `${host}:${port}`).join(",");
    this.#redis = makeRedis(options);
    this.#redis.on("error", (error) => {
      this.#fault ??= error;
    });
  }

  get fault(): Error | undefined {
    return this.#fault;
  }

  ready(): Node | undefined {
    return this.#usable && this.#redis.status === "ready" ? this.#redis : undefined;
  }

  /** One connect at a time, shared by all who wait for it. */
  connect(): Promise<void> {
    this.#connecting ??= this.#connectOnce().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  servers(): ServerPlace[] {
    return [{ place: this.place, key: "" }];
  }

  doubt(): void {}

  replaces(identity: string): boolean {
    const last = this.#lastIdentity;
    this.#lastIdentity = identity;
    return last !== undefined && last !== identity;
  }

  async end(): Promise<void> {
    if (this.#redis.status === "ready") {
      const deadline = Deadline.after(QUIT_TIMEOUT_MS, this.clock);
      await settleWithin(this.#redis.quit(), deadline).catch(() => {}); // it has gone before we said goodbye
    }
    if (this.#redis.status === "end") return;
    const ended = new Promise<void>((resolve) => this.#redis.once("end", resolve));
    this.#redis.disconnect();
    await settleWithin(ended, Deadline.after(2 * DISCONNECT_TIMEOUT_MS, this.clock));
  }

  async #connectOnce(): Promise<void> {
    this.#usable = false;
    this.#fault = undefined;
    try {
      await this.#redis.connect();
    } catch (error) {
      const fault = this.#fault ?? (error as Error); // ioredis throws nothing else
      throw (await tlsErrorOf(fault, this.options)) ?? fault;
    }
    // ioredis only reports a refused SELECT and goes on in database 0, where our keys must not be looked for.
    const { fault } = this;
    if (fault !== undefined) {
      this.#redis.disconnect(true);
      throw this.#refusal(fault);
    }
    this.#usable = true;
  }

  #refusal(fault: Error): Error {
    const { database, password } = this.options.address;
    const isDenied = serverCode(fault.message) === "NOPERM";
    if (commandOf(fault) !== "select" || isDenied) return fault;
    return databaseError(database, plainError(fault, password));
  }
}

function makeRedis(options: RouteOptions): Redis {
  const { address, natMap, connectTimeoutMs } = options;
  const { hosts, database: db, primaryName } = address;
  const common = {
    ...clientOptions(options),
    ...{ db, enableOfflineQueue: false, retryStrategy: () => null },
  };
  if (primaryName === undefined) return new Redis({ ...common, ...hosts[0] });
  return new Redis({
    ...common,
    ...{ sentinels: hosts, name: primaryName, sentinelCommandTimeout: connectTimeoutMs },
    sentinelRetryStrategy: () => null,
    ...(address.sentinelPassword !== undefined && { sentinelPassword: address.sentinelPassword }),
    ...(address.tls && { enableTLSForSentinelMode: true, sentinelTLS: common.tls ?? {} }),
    ...(natMap && { natMap }),
  });
}
