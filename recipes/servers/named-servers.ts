/** The address of a server in the form of its kind. */

import { GivenServer } from "./given-server.js";
import type { RedisServer, Server, ServerSource, ZooKeeperServer } from "./server.js";

/** A server of any source, passed through. */
class NamedServer implements Server {
  constructor(protected readonly server: Server) {}

  get source(): ServerSource {
    return this.server.source;
  }

  get host(): string {
    return this.server.host;
  }

  get port(): number {
    return this.server.port;
  }

  get pid(): number | undefined {
    return this.server.pid;
  }

  pause(): Promise<void> {
    return this.server.pause();
  }

  resume(): Promise<void> {
    return this.server.resume();
  }

  kill(): Promise<void> {
    return this.server.kill();
  }

  restart(): Promise<void> {
    return this.server.restart();
  }

  logTail(): Promise<string> {
    return this.server.logTail();
  }

  stop(): Promise<void> {
    return this.server.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server.stop();
  }
}

export class NamedZooKeeper extends NamedServer implements ZooKeeperServer {
  get connect(): string {
    const { server } = this;
    return server instanceof GivenServer ? server.address : `${server.host}:${server.port}`;
  }
}

export class NamedRedis extends NamedServer implements RedisServer {
  get url(): string {
    const { server } = this;
    return server instanceof GivenServer ? server.address : `redis://${server.host}:${server.port}`;
  }
}
