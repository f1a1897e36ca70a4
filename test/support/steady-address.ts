/**
 * An address of a ZooKeeper server that stays the same when the server is killed and started again: a program keeps its
 * port, and a container, which may come back at another one, gets a proxy in front of it.
 */
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { ZooKeeperProxy } from "./zookeeper-proxy.js";

export class SteadyAddress {
  private constructor(
    readonly server: ZooKeeperServer,
    readonly proxy: ZooKeeperProxy | undefined,
  ) {}

  static async of(server: ZooKeeperServer): Promise<SteadyAddress> {
    const moves = server.source === "docker";
    return new SteadyAddress(server, moves ? await ZooKeeperProxy.start(server.port) : undefined);
  }

  get connect(): string {
    return this.proxy?.connect ?? this.server.connect;
  }

  /** Starts the server again on the same data, and waits until it answers at this address. */
  async restart(): Promise<void> {
    await this.server.restart();
    this.proxy?.pointAt(this.server.port);
  }

  async close(): Promise<void> {
    await this.proxy?.close();
  }
}
