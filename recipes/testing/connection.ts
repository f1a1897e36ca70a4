/**
 * One connection between a simulated client and a simulated server. Messages of each direction arrive in their order,
 * or are held up on the way and arrive later, or are lost with the connection.
 */
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";
import type { SimulatedServer } from "./simulated-server.js";

export type Direction = "requests" | "replies";

/** How the network treats one client, whatever connection it has. */
export class Link {
  /** Directions in which everything is held up, silently. */
  readonly held = new Set<Direction>();
  /** What each message takes longer, in milliseconds. */
  slowMs = 0;
}

/** Range of a message's time on its way, in milliseconds. */
const TRAVEL_MS = [1, 10] as const;

/** Keeps messages apart that would arrive at one moment, in milliseconds. */
const APART_MS = 0.001;

export interface ConnectionEnds {
  scheduler: Scheduler;
  random: Random;
  server: SimulatedServer;
  link: Link;
  /** The client hears of a watch event. */
  onEvent(path: string): void;
  /** The client notices that the server has gone. */
  onBroken(): void;
}

export class Connection {
  readonly server: SimulatedServer;
  /** The server's life in which it was made. */
  readonly life: number;
  /** The client goes on using it. */
  isOpen = true;
  readonly #ends: ConnectionEnds;
  readonly #lastAtMs: Record<Direction, number> = { requests: 0, replies: 0 };
  readonly #held: { direction: Direction; arrive: () => void }[] = [];

  constructor(ends: ConnectionEnds) {
    this.#ends = ends;
    this.server = ends.server;
    this.life = ends.server.life;
  }

  send(direction: Direction, arrive: () => void): void {
    const { scheduler, random, link } = this.#ends;
    const nowMs = scheduler.nowMs();
    const atMs = Math.max(
      this.#lastAtMs[direction] + APART_MS,
      nowMs + random.whole(...TRAVEL_MS) + link.slowMs,
    );
    this.#lastAtMs[direction] = atMs;
    scheduler.after(atMs - nowMs, () => {
      if (link.held.has(direction)) this.#held.push({ direction, arrive });
      else arrive();
    });
  }

  /** Delivers what was held up. */
  deliver(): void {
    for (const { arrive } of this.#held.splice(0)) arrive();
  }

  sendEvent(path: string): void {
    this.send("replies", () => {
      if (this.isOpen) this.#ends.onEvent(path);
    });
  }

  /** The server is gone; the client notices, unless the network keeps it from noticing. */
  breakFromServer(): void {
    this.send("replies", () => {
      if (this.isOpen) this.#ends.onBroken();
    });
  }
}
