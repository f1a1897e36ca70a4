/**
 * How a simulated client keeps connected: it tries one server after the other, pings, and takes silence for a broken
 * connection; until its session has expired or it is closed.
 */
import { Connection, type Link } from "./connection.js";
import type { Lane } from "./lane.js";
import type { Random } from "./random.js";
import type { SessionRecord, SimulatedEnsemble } from "./simulated-ensemble.js";

export interface ClientConnectionOptions {
  ensemble: SimulatedEnsemble;
  /** The thread it runs on. */
  lane: Lane;
  link: Link;
  random: Random;
  /** Session timeout to ask for, in milliseconds. */
  sessionTimeoutMs: number;
  /** Connected, also after each reconnect. */
  onConnected: (session: SessionRecord, connection: Connection) => void;
  onBroken: () => void;
  onExpired: () => void;
  onEvent: (path: string) => void;
}

/** Ranges of the time until the next try to connect, in milliseconds. */
const FIRST_TRY_MS = [1, 20] as const;
const NEXT_TRY_MS = [20, 400] as const;

/** The client pings so often within a session timeout; silence for this share of it is a broken connection. */
const PINGS_PER_TIMEOUT = 3;
const SILENCE_SHARE = 0.6;

/** Share of expired sessions that a server replaces by a fresh one and does not tell, as some servers do. */
const REPLACED_SHARE = 0.1;

export class ClientConnection {
  readonly #options: ClientConnectionOptions;
  #session: SessionRecord | undefined;
  #current: Connection | undefined;
  #heardAtMs = 0;
  #seenZxid = 0;
  #sessionCount = 0;
  #isClosed = false;
  #isWedged = false;

  constructor(options: ClientConnectionOptions) {
    this.#options = options;
    this.#connectLater(FIRST_TRY_MS);
  }

  get session(): SessionRecord | undefined {
    return this.#session;
  }

  get current(): Connection | undefined {
    return this.#current;
  }

  /** How many sessions it has had. */
  get sessionCount(): number {
    return this.#sessionCount;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** It says what it said last, and neither hears nor does anything any more. */
  get isWedged(): boolean {
    return this.#isWedged;
  }

  /** The last transaction that it has seen the effects of. */
  get seenZxid(): number {
    return this.#seenZxid;
  }

  /** Notes that a server that has applied so much has answered. */
  heard(zxid: number): void {
    this.#heardAtMs = this.#options.lane.nowMs();
    this.#seenZxid = Math.max(this.#seenZxid, zxid);
  }

  /** True for the connection that is in use, unless the client is wedged. */
  hears(connection: Connection): boolean {
    return connection === this.#current && !this.#isWedged;
  }

  /** Fault: the connection breaks, and both sides notice. */
  cut(): void {
    const connection = this.#current;
    if (connection === undefined) return;
    if (this.#session?.connection === connection) this.#session.connection = undefined;
    this.#options.lane.receive(() => this.#broken(connection));
  }

  wedge(): void {
    this.#isWedged = true;
  }

  /** The server is told where it can be; nobody waits for its answer. */
  close(): void {
    const { ensemble, link } = this.#options;
    const isHeard = this.#current !== undefined && !link.held.has("requests");
    if (isHeard && this.#session !== undefined) ensemble.closeSession(this.#session.id);
    this.#end();
  }

  /** The session has expired, as a server has said. */
  expired(): void {
    if (this.#isClosed) return;
    this.#end();
    this.#options.onExpired();
  }

  #connectLater(range: readonly [number, number]): void {
    const { lane, random } = this.#options;
    lane.after(random.whole(...range), () => {
      if (this.#isClosed || this.#isWedged || this.#current !== undefined) return;
      if (!this.#connect()) this.#connectLater(NEXT_TRY_MS);
    });
  }

  /** One try; false when it was in vain. */
  #connect(): boolean {
    const { ensemble, link, random, lane, sessionTimeoutMs } = this.#options;
    const server = random.pick(ensemble.servers);
    if (!server.isUp || !ensemble.leader.isUp || link.held.has("requests")) return false;
    if (link.held.has("replies")) {
      // The server hears of the client, and keeps its session alive; the client does not hear of it.
      const session = ensemble.sessions.get(this.#session?.id ?? "");
      if (session !== undefined) session.touchedAtMs = Math.max(session.touchedAtMs, lane.nowMs());
      return false;
    }
    if (server.zxid < this.#seenZxid) return false; // it refuses a client that has seen more than it has
    if (this.#session !== undefined && !ensemble.sessions.has(this.#session.id)) {
      if (!random.chance(REPLACED_SHARE)) {
        this.expired();
        return true;
      }
      this.#session = undefined;
    }
    if (this.#session === undefined) {
      this.#session = ensemble.openSession(sessionTimeoutMs);
      this.#sessionCount += 1;
    }
    const session = this.#session;
    for (const each of ensemble.servers) each.forgetWatchesOf(session.id);
    const connection: Connection = new Connection({
      ...{ scheduler: lane.scheduler, random, server, link },
      onEvent: (path) =>
        lane.receive(() => {
          if (this.hears(connection)) this.#options.onEvent(path);
        }),
      onBroken: () => lane.receive(() => this.#broken(connection)),
    });
    this.#current = connection;
    session.connection = connection;
    session.touchedAtMs = Math.max(session.touchedAtMs, lane.nowMs());
    this.#heardAtMs = lane.nowMs();
    this.#options.onConnected(session, connection);
    this.#pingLater(connection, session);
    return true;
  }

  #pingLater(connection: Connection, session: SessionRecord): void {
    const { lane, link, ensemble } = this.#options;
    lane.after(session.timeoutMs / PINGS_PER_TIMEOUT, () => {
      if (!this.hears(connection)) return;
      const { server, life } = connection;
      const arrives = server.life === life && !link.held.has("requests");
      if (arrives && session.connection === connection && ensemble.sessions.has(session.id)) {
        session.touchedAtMs = Math.max(session.touchedAtMs, lane.nowMs());
        if (!link.held.has("replies")) this.#heardAtMs = lane.nowMs();
      }
      const silentMs = lane.nowMs() - this.#heardAtMs;
      if (silentMs >= SILENCE_SHARE * session.timeoutMs) this.#broken(connection);
      else this.#pingLater(connection, session);
    });
  }

  #broken(connection: Connection): void {
    if (!this.hears(connection)) return;
    connection.isOpen = false;
    this.#current = undefined;
    this.#options.onBroken();
    this.#connectLater(FIRST_TRY_MS);
  }

  #end(): void {
    this.#isClosed = true;
    if (this.#current !== undefined) this.#current.isOpen = false;
    this.#current = undefined;
  }
}
