/**
 * A TCP proxy in front of a ZooKeeper server that understands frames: it counts requests, drops the reply of a chosen
 * one, cuts, and stalls without closing. A stall keeps both sockets and delivers what it held when it is healed; that
 * one side has closed its connection is held too, so that the other side finds out as late as in a real partition.
 *
 *   client --requests--> [hold?] --> server
 *   client <--[hold? drop?]-- replies -- server
 */
import { createServer, connect as dial, type Server, type Socket } from "node:net";

const OPERATIONS: Record<number, string> = {
  1: "create",
  2: "delete",
  3: "exists",
  4: "read",
  7: "setAcl",
  9: "sync",
  11: "ping",
  12: "list",
  15: "create2",
  19: "createContainer",
  100: "auth",
  101: "setWatches",
  105: "setWatches2",
  [-11]: "closeSession",
};

/** xid of messages that answer no request: watch events and pings. */
const PING_XID = -2;

/** Last byte of the session id in the reply to a handshake, after length, version and timeout of four bytes each. */
const SESSION_ID_END = 19;

type Direction = "requests" | "replies";

export class ZooKeeperProxy {
  /** Requests that passed on the way to the server, in order, without pings. */
  readonly requests: string[] = [];
  /** Connections that were taken so far. */
  accepted = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #held = new Set<Direction>();
  #replacesSession = false;
  readonly #drops: { operation: string; dropped: () => void }[] = [];

  #targetPort: number;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(targetPort: number): Promise<ZooKeeperProxy> {
    const proxy = new ZooKeeperProxy(targetPort);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get connect(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy is closed");
    return `127.0.0.1:${address.port}`;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** How many requests and replies are kept back. */
  get held(): number {
    let count = 0;
    for (const link of this.#links) count += link.held;
    return count;
  }

  /** Keeps everything in the given directions (default: both) from now on, and the sockets open. */
  stall(...directions: Direction[]): void {
    for (const direction of directions.length > 0 ? directions : BOTH) this.#held.add(direction);
  }

  /** Delivers what was held, the ends of connections too, and lets everything pass again. */
  heal(): void {
    this.#held.clear();
    for (const link of this.#links) link.heal();
  }

  /** Delivers what was held, and goes on holding what comes. */
  deliver(): void {
    for (const link of this.#links) link.flush();
  }

  /** Cuts every connection that there is now; new ones are taken. */
  cut(): void {
    for (const link of [...this.#links]) link.cut();
  }

  /** Leads new connections to another port, as after a restart of the server; those that there are stay. */
  pointAt(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  /** The next such request reaches the server; its reply is dropped, the connection cut, and then this settles. */
  dropReplyOf(operation: string): Promise<void> {
    return new Promise((resolve) => this.#drops.push({ operation, dropped: resolve }));
  }

  /** The next handshake is answered with another session than the one that was asked for. */
  replaceNextSession(): void {
    this.#replacesSession = true;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    const link: Link = new Link(client, dial(this.#targetPort, "127.0.0.1"), {
      isHeld: (direction) => this.#held.has(direction),
      onRequest: (operation) => {
        if (operation !== "ping") this.requests.push(operation);
      },
      dropsReplyOf: (operation) => {
        const index = this.#drops.findIndex((drop) => drop.operation === operation);
        const [drop] = index < 0 ? [] : this.#drops.splice(index, 1);
        drop?.dropped();
        return drop !== undefined;
      },
      replacesSession: () => {
        const replaces = this.#replacesSession;
        this.#replacesSession = false;
        return replaces;
      },
      onClosed: () => this.#links.delete(link),
    });
    this.#links.add(link);
    this.accepted += 1;
  }
}

const BOTH: Direction[] = ["requests", "replies"];

interface LinkHooks {
  isHeld(direction: Direction): boolean;
  onRequest(operation: string): void;
  dropsReplyOf(operation: string): boolean;
  replacesSession(): boolean;
  onClosed(): void;
}

/** One connection through the proxy. */
class Link {
  readonly #frames: Record<Direction, FrameReader> = {
    requests: new FrameReader(),
    replies: new FrameReader(),
  };
  readonly #waiting: Record<Direction, Frame[]> = { requests: [], replies: [] };
  readonly #operations = new Map<number, string>();
  /** Whether the client began with a four-letter word, and what follows has no frames. */
  #isWord: boolean | undefined;
  /** Its news travels in this direction and was held. */
  #ended: Direction | undefined;

  constructor(
    readonly client: Socket,
    readonly server: Socket,
    readonly hooks: LinkHooks,
  ) {
    this.#carry(client, "requests");
    this.#carry(server, "replies");
  }

  #carry(from: Socket, direction: Direction): void {
    from.setNoDelay(true);
    from.on("data", (data) => this.#take(direction, data));
    from.on("error", () => {}); // a cut connection is what this proxy is for; "close" follows
    from.on("close", () => {
      if (this.hooks.isHeld(direction) && this.#ended === undefined) this.#ended = direction;
      else this.cut();
    });
  }

  heal(): void {
    this.flush();
    if (this.#ended === "requests") this.server.end();
    if (this.#ended === "replies") this.client.end();
  }

  cut(): void {
    this.client.destroy();
    this.server.destroy();
    this.hooks.onClosed();
  }

  get held(): number {
    return this.#waiting.requests.length + this.#waiting.replies.length;
  }

  flush(): void {
    for (const direction of BOTH) {
      for (const frame of this.#waiting[direction].splice(0)) this.#pass(direction, frame);
    }
  }

  #take(direction: Direction, data: Buffer): void {
    this.#isWord ??= /^[a-z]{4}/.test(data.toString("latin1", 0, 4)); // the client speaks first
    if (this.#isWord) {
      (direction === "requests" ? this.server : this.client).write(data);
      return;
    }
    for (const frame of this.#frames[direction].push(data)) {
      if (this.hooks.isHeld(direction)) this.#waiting[direction].push(frame);
      else if (this.client.destroyed) return;
      else this.#pass(direction, frame);
    }
  }

  #pass(direction: Direction, { bytes, first }: Frame): void {
    if (direction === "requests") {
      if (!first) this.#noteRequest(bytes);
      this.server.write(bytes);
      return;
    }
    if (first && this.hooks.replacesSession())
      bytes[SESSION_ID_END] = ~(bytes[SESSION_ID_END] ?? 0);
    const xid = first ? PING_XID : bytes.readInt32BE(4);
    const operation = this.#operations.get(xid);
    this.#operations.delete(xid);
    if (operation !== undefined && this.hooks.dropsReplyOf(operation)) this.cut();
    else this.client.write(bytes);
  }

  #noteRequest(bytes: Buffer): void {
    const type = bytes.readInt32BE(8);
    const operation = OPERATIONS[type] ?? `type ${type}`;
    this.#operations.set(bytes.readInt32BE(4), operation);
    this.hooks.onRequest(operation);
  }
}

/** Four bytes of length, then as many bytes. The first frame of each direction is the handshake. */
interface Frame {
  bytes: Buffer;
  first: boolean;
}

/** Cuts a stream into frames. */
class FrameReader {
  #rest = Buffer.alloc(0);
  #first = true;

  push(data: Buffer): Frame[] {
    this.#rest = Buffer.concat([this.#rest, data]);
    const frames: Frame[] = [];
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readInt32BE(0);
      if (this.#rest.length < end) break;
      frames.push({ bytes: this.#rest.subarray(0, end), first: this.#first });
      this.#first = false;
      this.#rest = this.#rest.subarray(end);
    }
    return frames;
  }
}
