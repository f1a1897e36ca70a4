/**
 * A session whose server does what a test says: for answers that a real server gives only after billions of requests.
 */
import { systemClock } from "../../lib/clock.js";
import { NoNodeError } from "../../lib/errors.js";
import type { CreateMode, Session, SessionState, Stat } from "../../lib/zookeeper/session-port.js";

const SESSION_ID = "100000000000001";

export class HandMadeSession implements Session {
  readonly clock = systemClock;
  readonly id = SESSION_ID;
  readonly state: SessionState = "CONNECTED";
  readonly negotiatedTimeoutMs = 10_000;
  /** Children of every path, by name. */
  readonly nodes = new Set<string>();
  readonly deleted: string[] = [];

  /** @param sequence what is appended to the next sequential znode, as text */
  constructor(
    public sequence: string,
    public czxid = 7,
  ) {}

  get lastConfirmedAtMs(): number {
    return this.clock.nowMs();
  }

  async create(path: string, _data: string, mode: CreateMode): Promise<string> {
    if (mode !== "ephemeralSequential") return path;
    const created = path + this.sequence;
    this.nodes.add(created);
    return created;
  }

  async list(path: string): Promise<{ children: string[]; stat: Stat }> {
    const below = [...this.nodes].filter((node) => node.startsWith(`${path}/`));
    return { children: below.map((node) => node.slice(path.length + 1)), stat: this.#stat() };
  }

  async read(path: string): Promise<{ data: string; stat: Stat }> {
    if (!this.nodes.has(path)) throw new NoNodeError(`no ${path}`, "read", path, -101);
    return { data: "", stat: this.#stat() };
  }

  async delete(path: string): Promise<void> {
    this.nodes.delete(path);
    this.deleted.push(path);
  }

  async sync(): Promise<void> {}
  onState = () => () => {};
  onWatch = () => () => {};
  keepConfirmed = () => () => {};

  #stat(): Stat {
    return { czxid: this.czxid, ephemeralOwner: SESSION_ID, createdAtMs: 0 };
  }
}
