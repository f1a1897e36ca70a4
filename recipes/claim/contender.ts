/**
 * One contender: the znode of one attempt, from its create to its certain removal.
 * There is exactly one znode for an attempt, because its name carries a uuid by which a create whose reply was lost is
 * found again (the idea is Curator's protected mode; the fault is ZOOKEEPER-1262).
 */
import { randomUUID } from "node:crypto";
import { Deadline } from "../../lib/deadline.js";
import {
  ConnectionLossError,
  NoNodeError,
  SessionClosedError,
  SessionLostError,
} from "../../lib/errors.js";
import type { Acl } from "../../lib/zookeeper/access.js";
import { nameOf } from "../../lib/zookeeper/paths.js";
import type { Session, Stat } from "../../lib/zookeeper/session-port.js";
import { untilState } from "../../lib/zookeeper/until-state.js";
import { contenderPrefix } from "../../lib/zookeeper/znode-name.js";

/** Children and stat of the claim path, from one moment. */
export interface Listing {
  children: string[];
  stat: Stat;
}

export interface ContenderPlace {
  session: Session;
  /** The claim path. */
  path: string;
  /** What the znode is given; undefined: nothing. */
  protection: Acl | undefined;
}

/** Whatever its access control list was before, it is ours to set. */
const ANY_VERSION = -1;

export class Contender {
  readonly session: Session;
  readonly claimPath: string;
  readonly #prefix: string;
  #created: Promise<string> | undefined;
  #path: string | undefined;
  /** What is still to be given to the znode. */
  #protection: Acl | undefined;
  #removal: Promise<void> | undefined;

  constructor({ session, path, protection }: ContenderPlace, uuid: string = randomUUID()) {
    this.session = session;
    this.claimPath = path;
    this.#protection = protection;
    this.#prefix = contenderPrefix(uuid);
  }

  /** The znode's full path, once it is known. */
  get path(): string | undefined {
    return this.#path;
  }

  /** The znode's name, once it is known. */
  get name(): string | undefined {
    return this.#path === undefined ? undefined : nameOf(this.#path);
  }

  /**
   * Sends the create and a listing in one go: a session is first in, first out, so one round trip brings our name, our
   * rivals and the generation.
   *
   * @returns the listing, or undefined when the create's reply was lost and {@link recover} has to find out
   * @throws NoNodeError when the claim path does not exist
   */
  async enter(data: string): Promise<Listing | undefined> {
    const created = this.session.create(
      `${this.claimPath}/${this.#prefix}`,
      data,
      "ephemeralSequential",
    );
    this.#created = created;
    const listed = this.session.list(this.claimPath);
    listed.catch(() => {}); // when both fail, the create's error is the one that says what to do
    try {
      this.#path = await created;
      await this.#protect();
      return await listed;
    } catch (error) {
      if (error instanceof ConnectionLossError) return undefined;
      throw error;
    }
  }

  /**
   * Finds the znode of a create whose reply was lost, and protects one that is not protected yet. Has to be called in
   * the connected state.
   *
   * @returns true when it is there and belongs to this session, false when the create had no effect
   */
  async recover(): Promise<boolean> {
    if (this.#path !== undefined) {
      await this.#protect();
      return true;
    }
    // The server that we are connected to now may lag behind the one that made the znode.
    await this.session.sync(this.claimPath);
    const { children } = await this.session.list(this.claimPath);
    for (const name of children.filter((child) => child.startsWith(this.#prefix))) {
      const path = `${this.claimPath}/${name}`;
      if ((await this.#ownerOf(path)) !== this.session.id) continue; // another session's node is never adopted
      this.#path = path;
      await this.#protect();
      return true;
    }
    return false;
  }

  /** Whether the znode is there and ours, by what the ensemble knew when this was called, or later. */
  async isThere(): Promise<boolean> {
    await this.session.sync(this.claimPath);
    return (await this.#ownerOf(this.#path ?? "")) === this.session.id;
  }

  /**
   * Nobody but us could remove the znode, because that is a right on its parent; with a list of its own, nobody can
   * write to it either, or shut others out who want to watch it.
   */
  async #protect(): Promise<void> {
    if (this.#path === undefined || this.#protection === undefined) return;
    try {
      await this.session.setAcl(this.#path, this.#protection, ANY_VERSION);
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error; // removed by somebody: the next listing shows it
    }
    this.#protection = undefined;
  }

  async #ownerOf(path: string): Promise<string | undefined> {
    try {
      return (await this.session.read(path)).stat.ephemeralOwner;
    } catch (error) {
      if (error instanceof NoNodeError) return undefined;
      throw error;
    }
  }

  /**
   * Removes the znode and repeats until it or the session is gone. Called again, it gives the same promise, which never
   * rejects unless the server forbids the removal.
   */
  remove(): Promise<void> {
    this.#removal ??= this.#removeForCertain();
    return this.#removal;
  }

  async #removeForCertain(): Promise<void> {
    this.#protection = undefined; // it goes anyway, also where we are not allowed to set its list
    await this.#created?.catch(() => {}); // whatever became of the create, what is left of it is removed below
    for (;;) {
      const state = await untilState(
        this.session,
        (s) => s !== "SUSPENDED",
        Deadline.after(Number.POSITIVE_INFINITY, this.session.clock),
      );
      if (state !== "CONNECTED") return; // the server removes the znode together with its session
      try {
        if (!(await this.recover())) return;
        await this.session.delete(this.#path ?? "");
        return;
      } catch (error) {
        if (error instanceof NoNodeError || isTheEnd(error)) return;
        if (!(error instanceof ConnectionLossError)) throw error;
      }
    }
  }
}

/** True for faults that say that the session is over, and the znode with it, whatever the session's state says yet. */
function isTheEnd(error: unknown): boolean {
  return error instanceof SessionLostError || error instanceof SessionClosedError;
}
