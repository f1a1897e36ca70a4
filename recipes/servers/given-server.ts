/** A server that was there before us, and is left as it is. */
import { OptionError } from "../../lib/errors.js";
import type { Server } from "./server.js";

export class GivenServer implements Server {
  readonly source = "given";
  readonly pid = undefined;

  constructor(
    /** As it was given; more than one address for an ensemble. */
    readonly address: string,
    readonly host: string,
    readonly port: number,
  ) {}

  pause(): Promise<void> {
    return this.#refuse("paused");
  }

  resume(): Promise<void> {
    return this.#refuse("continued");
  }

  kill(): Promise<void> {
    return this.#refuse("killed");
  }

  restart(): Promise<void> {
    return this.#refuse("restarted");
  }

  async logTail(): Promise<string> {
    return "";
  }

  async stop(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}

  async #refuse(what: string): Promise<never> {
    throw new OptionError(`the server at ${this.host}:${this.port} was given; it is not ${what}`);
  }
}

export function givenZooKeeper(connect: string): GivenServer {
  const first = /^(?<host>\[[^\]]+\]|[^:,/]+)(:(?<port>\d+))?/.exec(connect)?.groups;
  return new GivenServer(connect, first?.host ?? connect, Number(first?.port ?? 2181));
}

export function givenRedis(url: string): GivenServer {
  if (!URL.canParse(url)) throw new OptionError("the address of Redis is not a URL");
  const { hostname, port } = new URL(url);
  return new GivenServer(url, hostname, Number(port || 6379));
}
