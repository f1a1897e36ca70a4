/**
 * TLS to ZooKeeper, which the native client has not: a thread of this process listens on 127.0.0.1 for each server and
 * passes on under TLS, and the native client is given these addresses. It begins with the first session.
 *
 * The ports can be reached by every user of the machine. On Linux connections of other processes are refused; elsewhere
 * a stranger gets what anybody has who can reach the servers, and the identity of our certificate if there is one.
 */
import { Worker } from "node:worker_threads";
import { type Deadline, settleWithin, TIMED_OUT } from "../../deadline.js";
import { ZooKeeperTlsError, ZooKeeperUnreachableError } from "../../errors.js";
import type { TlsIdentity } from "../../tls/tls-options.js";
import type { ConnectString } from "../connect-string.js";
import type { TunnelNews, TunnelPlan } from "./messages.js";

/** The entry point of the thread, beside this file. */
const ENTRY = new URL("./tunnel-thread.js", import.meta.url);

export interface TunnelOptions {
  servers: ConnectString;
  identity: TlsIdentity;
  handshakeMs: number;
  warn: (message: string) => void;
}

export class Tunnel {
  readonly #options: TunnelOptions;
  #worker: Worker | undefined;
  #listening: Promise<ConnectString> | undefined;
  #untrusted = new AbortController();
  /** Servers with which TLS failed since one of them answered. */
  readonly #failed = new Set<number>();
  #lastFailure: string | undefined;
  readonly #told = new Set<string>();

  constructor(options: TunnelOptions) {
    this.#options = options;
  }

  /**
   * The addresses for the native client, and a signal that aborts when TLS has failed with every server.
   *
   * @throws ZooKeeperUnreachableError when the thread does not listen before the deadline
   */
  async ready(deadline: Deadline): Promise<{ servers: ConnectString; untrusted: AbortSignal }> {
    this.#failed.clear();
    this.#untrusted = new AbortController();
    const { signal: untrusted } = this.#untrusted;
    this.#listening ??= this.#start();
    const servers = await settleWithin(this.#listening, deadline);
    if (servers === TIMED_OUT) {
      throw new ZooKeeperUnreachableError("the thread for TLS to ZooKeeper did not start in time");
    }
    return { servers, untrusted };
  }

  /** The error for a wait that was in vain, which says why where that is known. */
  explain(message: string, options?: { cause?: unknown }): Error {
    const { reason } = this.#untrusted.signal;
    if (reason !== undefined) return reason;
    const why =
      this.#lastFailure === undefined ? "" : `; the last failure was: ${this.#lastFailure}`;
    return new ZooKeeperUnreachableError(message + why, options);
  }

  /** Ends the thread with its listeners and connections; safe to call again. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Promise<ConnectString> {
    const { servers, identity, handshakeMs, warn } = this.#options;
    const plan: TunnelPlan = { servers: servers.servers, identity, handshakeMs };
    // Options for this process's Node (a loader, a debugger) are not meant for the thread.
    const worker = new Worker(ENTRY, { execArgv: [], workerData: plan, name: "fencekeeper tls" });
    this.#worker = worker;
    return new Promise((resolve, reject) => {
      worker.on("message", (news: TunnelNews) => {
        if (news.is !== "listening") {
          this.#hear(news);
          return;
        }
        worker.unref(); // the sessions keep the process alive, not the way to them
        if (!news.guarded && identity.cert !== undefined) {
          warn(
            "this system does not tell whose a connection to 127.0.0.1 is: other users of this machine can reach " +
              "ZooKeeper with our certificate",
          );
        }
        const local = news.ports.map((port) => ({ host: "127.0.0.1", port }));
        resolve({ servers: local, chroot: servers.chroot });
      });
      worker.on("error", (error) => {
        this.#lastFailure = `the thread for TLS ended: ${error.message}`;
      });
      worker.on("exit", () => {
        this.#listening = undefined; // the next session gets another one
        reject(new ZooKeeperUnreachableError(this.#lastFailure ?? "the thread for TLS has ended"));
      });
    });
  }

  #hear(news: Exclude<TunnelNews, { is: "listening" }>): void {
    if (news.is === "up") {
      this.#failed.clear();
      this.#lastFailure = undefined;
      return;
    }
    const { servers } = this.#options.servers;
    const { host, port } = servers[news.server] ?? { host: "", port: 0 };
    this.#lastFailure = `${host}:${port}: ${news.message}`;
    if (!news.untrusted) return;
    this.#warnOnce(`no TLS connection to ZooKeeper at ${this.#lastFailure}`);
    this.#failed.add(news.server);
    if (this.#failed.size === servers.length) {
      this.#untrusted.abort(
        new ZooKeeperTlsError(
          `no TLS connection to ZooKeeper can be made (${this.#lastFailure}): check that the ca is the one that ` +
            "signed the server's certificate, that the certificate has the host's name, and that the server takes ours",
        ),
      );
    }
  }

  #warnOnce(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#options.warn(message);
  }
}
