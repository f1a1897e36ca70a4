/**
 * A client's handle on a simulated ensemble, with what the real client does: requests in order on one connection, and
 * watches that are set again at the next server when the connection breaks.
 */
import type { Acl } from "../../lib/zookeeper/access.js";
import type { Handle, HandleEvents, HandleRequest } from "../../lib/zookeeper/handle.js";
import { requestError, ZK } from "../../lib/zookeeper/request-error.js";
import type { CreateMode, Stat } from "../../lib/zookeeper/session-port.js";
import { ClientConnection } from "./client-connection.js";
import type { Connection, Link } from "./connection.js";
import type { Lane } from "./lane.js";
import { type PendingRequest, PendingRequests } from "./pending-requests.js";
import type { Random } from "./random.js";
import { serve } from "./serve.js";
import type { SessionRecord, SimulatedEnsemble } from "./simulated-ensemble.js";
import { statOf } from "./simulated-tree.js";

export interface SimulatedHandleOptions {
  ensemble: SimulatedEnsemble;
  /** The thread it runs on. */
  lane: Lane;
  link: Link;
  random: Random;
  request: HandleRequest;
  events: HandleEvents;
}

/** Share of broken connections at which the client also tells its watches something, which means nothing. */
const FALSE_ALARM_SHARE = 0.2;

export class SimulatedHandle implements Handle {
  readonly #options: SimulatedHandleOptions;
  readonly #client: ClientConnection;
  readonly #pending = new PendingRequests();
  readonly #watched = new Set<string>();
  #loses: { what: "request" | "reply"; operation: string } | undefined;
  #twin: string | undefined;

  constructor(options: SimulatedHandleOptions) {
    const { ensemble, lane, link, random, request, events } = options;
    this.#options = options;
    this.#client = new ClientConnection({
      ...{ ensemble, lane, link, random, sessionTimeoutMs: request.sessionTimeoutMs },
      onConnected: (session, connection) => {
        events.connected({ sessionId: session.id, timeoutMs: session.timeoutMs });
        this.#setWatches(session, connection);
      },
      onBroken: () => {
        events.connecting();
        if (random.chance(FALSE_ALARM_SHARE)) for (const path of this.#watched) events.watch(path);
        this.#pending.fail(ZK.connectionLoss);
      },
      onExpired: () => {
        this.#pending.fail(ZK.sessionExpired);
        events.closed();
      },
      onEvent: (path) => {
        this.#watched.delete(path);
        events.watch(path);
      },
    });
  }

  get sessionId(): string | undefined {
    return this.#client.session?.id;
  }

  /** How many sessions it has had. */
  get sessionCount(): number {
    return this.#client.sessionCount;
  }

  /** Creates of which it was not known what became of them. */
  get unknownCreates(): number {
    return this.#pending.unknownCreates;
  }

  /** Requests that have not been answered. */
  get pendingCount(): number {
    return this.#pending.count;
  }

  create(path: string, data: string, mode: CreateMode): Promise<string> {
    const { ensemble } = this.#options;
    const twin = mode === "ephemeralSequential" ? this.#twin : undefined;
    if (twin !== undefined) this.#twin = undefined;
    let given: string | undefined;
    const create = (own: string) => {
      given = ensemble.sessions.has(twin ?? "") ? twin : undefined;
      return ensemble.create(given ?? own, path, data, mode);
    };
    return this.#ask("create", path, create, () => given !== undefined);
  }

  delete(path: string): Promise<void> {
    return this.#ask("delete", path, () => this.#options.ensemble.delete(path));
  }

  sync(path: string): Promise<void> {
    return this.#ask("sync", path, () => undefined);
  }

  /** The list's version is kept, and nothing of the list is enforced: nobody here is a stranger. */
  setAcl(path: string, _acl: Acl, version: number): Promise<void> {
    return this.#ask("setAcl", path, () => this.#options.ensemble.setAcl(path, version));
  }

  exists(path: string): Promise<Stat> {
    const { tree } = this.#options.ensemble;
    return this.#ask("exists", path, (_, zxid) => statOf(tree.get("exists", path, zxid)));
  }

  /** What the simulation plays watches no children; who does is told so, and not left to wait for nothing. */
  list(path: string, watch: boolean): Promise<{ children: string[]; stat: Stat }> {
    if (watch) throw new Error("the simulated ensemble has no watches on children");
    const { tree } = this.#options.ensemble;
    return this.#ask("list", path, (_, zxid) => tree.list(path, zxid));
  }

  read(path: string, watch: boolean): Promise<{ data: string; stat: Stat }> {
    const { tree } = this.#options.ensemble;
    return this.#ask("read", path, (session, zxid, server) => {
      const node = tree.get("read", path, zxid);
      if (watch) {
        server.watch(path, session);
        this.#watched.add(path);
      }
      return { data: node.data, stat: statOf(node) };
    });
  }

  async close(): Promise<void> {
    if (this.#client.isClosed) return;
    this.#client.close();
    this.#watched.clear();
    this.#pending.fail(ZK.closing);
  }

  /** Fault: the connection breaks, and both sides notice. */
  cut(): void {
    this.#client.cut();
  }

  /** Fault: the next such request, or its reply, is lost together with the connection. */
  lose(what: "request" | "reply", operation: string): void {
    this.#loses = { what, operation };
  }

  /** Fault: the next create of a contender is carried out for another session, and the connection breaks. */
  giveAway(session: string): void {
    this.#twin = session;
  }

  /** Fault: the client goes on saying what it said last, and neither hears nor does anything any more. */
  wedge(): void {
    this.#client.wedge();
  }

  /** The network lets everything pass again: what was held up is delivered. */
  healed(): void {
    this.#client.current?.deliver();
  }

  #ask<T>(
    operation: string,
    path: string,
    apply: Parameters<typeof serve<T>>[0]["apply"],
    losesReply = () => false,
  ) {
    return new Promise<T>((resolve, reject) => {
      const { current: connection, isClosed, isWedged } = this.#client;
      if (isClosed || connection === undefined) {
        const code = isClosed ? ZK.closing : ZK.connectionLoss;
        this.#options.lane.after(0, () => reject(requestError(operation, path, code, "simulated")));
        return;
      }
      const pending: PendingRequest = { operation, path, reject };
      this.#pending.add(pending);
      if (isWedged) return;
      if (this.#isLost("request", operation)) {
        this.cut();
        return;
      }
      connection.send("requests", () => {
        const { ensemble, random } = this.#options;
        const session = this.#client.session as SessionRecord; // there is one, or there were no connection
        serve({ ensemble, random, session, connection, operation, path, apply }, (answer, zxid) => {
          if (losesReply() || this.#isLost("reply", operation)) this.cut();
          else this.#reply(connection, pending, () => resolve(answer()), zxid);
        });
      });
    });
  }

  #isLost(what: "request" | "reply", operation: string): boolean {
    const lost = this.#loses?.what === what && this.#loses.operation === operation;
    if (lost) this.#loses = undefined;
    return lost;
  }

  #reply(connection: Connection, pending: PendingRequest, settle: () => void, zxid: number): void {
    connection.send("replies", () => {
      this.#options.lane.receive(() => {
        if (!this.#client.hears(connection) || !this.#pending.answered(pending)) return;
        this.#client.heard(zxid);
        try {
          settle();
        } catch (error) {
          pending.reject(error as Error); // a fault of the server's, with its code
          const { ensemble } = this.#options;
          if (!ensemble.sessions.has(this.sessionId ?? "")) this.#client.expired();
        }
      });
    });
  }

  /** A znode that went while the connection was broken is told at once. */
  #setWatches({ id }: SessionRecord, connection: Connection): void {
    const { server } = connection;
    for (const path of this.#watched) {
      const node = this.#options.ensemble.tree.find(path, server.zxid);
      if (node !== undefined && node.czxid <= this.#client.seenZxid) server.watch(path, id);
      else connection.sendEvent(path);
    }
  }
}
