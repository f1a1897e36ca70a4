/**
 * A short conversation in ZooKeeper's own protocol, for the two things that the npm package does not give: the access
 * control list of a znode (its call for that ends the whole process when it fails) and the ensemble's current zxid,
 * which heads every reply. It opens a session of its own, sends nothing that writes, and closes it.
 */
import { connect, type Socket } from "node:net";
import { type Deadline, settleWithin, TIMED_OUT } from "../../../lib/deadline.js";
import { ZooKeeperUnreachableError } from "../../../lib/errors.js";
import type { Server } from "../../../lib/zookeeper/connect-string.js";
import { ByteReader } from "./byte-reader.js";

/** One entry of an access control list. */
export interface AclEntry {
  /** Sum of `RIGHTS`. */
  rights: number;
  scheme: string;
  id: string;
}

/** Rights as the server counts them. */
export const RIGHTS = { read: 1, write: 2, create: 4, delete: 8, admin: 16 } as const;

export interface WireReply {
  /** The last transaction that the server had applied. */
  zxid: bigint;
  /** 0, or the server's negative number. */
  code: number;
  body: ByteReader;
}

const GET_ACL = 6;
const CLOSE_SESSION = -11;
const SESSION_TIMEOUT_MS = 10_000;
/** The largest reply that is read; lists of rights have a few entries. */
const FRAME_BYTES_MAX = 2 ** 20;

export class Wire {
  #pending = Buffer.alloc(0);
  #wake = () => {};
  #ended: Error | undefined;
  #lastXid = 0;

  private constructor(
    readonly place: string,
    readonly socket: Socket,
    readonly deadline: Deadline,
  ) {
    socket.on("data", (data) => {
      this.#pending = Buffer.concat([this.#pending, data]);
      this.#wake();
    });
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(new Error("the server closed the connection")));
  }

  /** @throws ZooKeeperUnreachableError when the server does not take us in before the deadline */
  static async open({ host, port }: Server, deadline: Deadline): Promise<Wire> {
    const wire = new Wire(`${host}:${port}`, connect({ host, port }), deadline);
    try {
      const hello = Buffer.alloc(45);
      hello.writeInt32BE(SESSION_TIMEOUT_MS, 12);
      hello.writeInt32BE(16, 24); // the length of a password, all zeros: a new session
      wire.#send(hello);
      await wire.#frame();
      return wire;
    } catch (error) {
      wire.socket.destroy();
      throw error;
    }
  }

  /** The access control list of a znode, or why the server did not give it, and its current zxid. */
  async acl(path: string): Promise<{ zxid: bigint; code: number; entries: AclEntry[] }> {
    const { zxid, code, body } = await this.#ask(GET_ACL, text(path));
    return { zxid, code, entries: code === 0 ? body.vector(readEntry) : [] };
  }

  /** Ends the session and the connection; bounded. */
  async close(): Promise<void> {
    try {
      await this.#ask(CLOSE_SESSION, Buffer.alloc(0));
    } catch (error) {
      if (!(error instanceof ZooKeeperUnreachableError)) throw error; // it ends by its timeout
    }
    this.socket.destroy();
  }

  async #ask(operation: number, body: Buffer): Promise<WireReply> {
    this.#lastXid += 1;
    const head = Buffer.alloc(8);
    head.writeInt32BE(this.#lastXid, 0);
    head.writeInt32BE(operation, 4);
    this.#send(Buffer.concat([head, body]));
    for (;;) {
      const reader = new ByteReader(await this.#frame());
      const [xid, zxid, code] = [reader.int(), reader.long(), reader.int()];
      if (xid === this.#lastXid) return { zxid, code, body: reader };
    }
  }

  #send(frame: Buffer): void {
    const length = Buffer.alloc(4);
    length.writeInt32BE(frame.length);
    this.socket.write(Buffer.concat([length, frame]));
  }

  async #frame(): Promise<Buffer> {
    for (;;) {
      const length = this.#pending.length < 4 ? undefined : this.#pending.readInt32BE();
      if (length !== undefined && (length < 16 || length > FRAME_BYTES_MAX)) {
        throw this.#unreachable("does not speak ZooKeeper's protocol without TLS");
      }
      if (length !== undefined && this.#pending.length >= 4 + length) {
        const frame = this.#pending.subarray(4, 4 + length);
        this.#pending = this.#pending.subarray(4 + length);
        return frame;
      }
      if (this.#ended !== undefined) throw this.#unreachable(this.#ended.message);
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const waited = await settleWithin(woken, this.deadline);
      if (waited === TIMED_OUT) throw this.#unreachable("did not answer in time");
    }
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#wake();
  }

  #unreachable(why: string): ZooKeeperUnreachableError {
    return new ZooKeeperUnreachableError(`the ZooKeeper server at ${this.place}: ${why}`);
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function readEntry(body: ByteReader): AclEntry {
  return { rights: body.int(), scheme: body.text(), id: body.text() };
}
