/**
 * A session whose server does what a test says: for answers that a real server gives only after billions of requests.
 */
import { systemClock } from "../../lib/clock.js";
import { ConnectionLossError, NoNodeError } from "../../lib/errors.js";
import type { CreateMode, Session, SessionState, Stat } from "../../lib/zookeeper/session-port.js";

const SESSION_ID = "100000000000001";

export class HandMadeSession implements Session {
  readonly clock = systemClock;
  readonly id = SESSION_ID;
  readonly state: SessionState = "CONNECTED";
  readonly protection = undefined;
  readonly negotiatedTimeoutMs = 10_000;
  /** Children of every path, by name. */
  readonly nodes = new Set<string>();
  readonly deleted: string[] = [];
  /** What happens to the next create of a contender, whose reply is lost in any case. */
  losesNextCreate: "without effect" | "made by us" | "made by another session" | undefined;
  readonly #owners = new Map<string, string>();

  readonly #sequences: string[];

  /** @param sequences what is appended to sequential znodes, as text; the last one is given again and again */
  constructor(
    sequences: string | string[],
    readonly czxid = 7,
  ) {
    this.#sequences = [sequences].flat();
  }

  get lastConfirmedAtMs(): number {
    return this.clock.nowMs();
  }

  async create(path: string, _data: string, mode: CreateMode): Promise<string> {
    if (mode !== "ephemeralSequential") return path;
    const [sequence = "", ...later] = this.#sequences;
    if (later.length > 0) this.#sequences.shift();
    const created = path + sequence;
    const fault = this.losesNextCreate;
    this.losesNextCreate = undefined;
    if (fault !== "without effect") this.nodes.add(created);
    if (fault === "made by another session") this.#owners.set(created, "200000000000002");
    if (fault !== undefined) throw new ConnectionLossError("the reply is lost", "create", path, -4);
    return created;
  }

  async list(path: string): Promise<{ children: string[]; stat: Stat }> {
    const below = [...this.nodes].filter((node) => node.startsWith(`${path}/`));
    return { children: below.map((node) => node.slice(path.length + 1)), stat: this.#stat() };
  }

  async read(path: string): Promise<{ data: string; stat: Stat }> {
    if (!this.nodes.has(path)) throw new NoNodeError(`no ${path}`, "read", path, -101);
    const ephemeralOwner = this.#owners.get(path) ?? SESSION_ID;
    return { data: "", stat: { ...this.#stat(), ephemeralOwner } };
  }

  async delete(path: string): Promise<void> {
    this.nodes.delete(path);
    this.deleted.push(path);
  }

  giveUp(): void {}
  async sync(): Promise<void> {}
  async setAcl(): Promise<void> {}
  onState = () => () => {};
  onWatch = () => () => {};
  keepConfirmed = () => () => {};

  #stat(): Stat {
    const versions = { aclVersion: 0, childVersion: 0 };
    return { czxid: this.czxid, ephemeralOwner: SESSION_ID, createdAtMs: 0, ...versions };
  }
}
