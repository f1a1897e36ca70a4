/**
 * Waits for replicas or files, shared by the writes that were answered in the same breath. A wait covers all that was
 * written on its connection before it, and holds that connection: one for each write would make them queue, where a
 * replica is missing each for the whole of its timeout.
 */
import type { ScriptRequest } from "./attempt.js";
import type { Node } from "./client/route.js";

type Wait = NonNullable<ScriptRequest["wait"]>;

/** A connection, and the socket that it had when something was written. */
interface Written {
  node: Node;
  stream: object;
}

export class SharedWaits {
  /** By socket, those that are about to be sent. */
  readonly #due = new WeakMap<object, Map<string, Promise<unknown>>>();

  /** The reply to a wait for what was written over a socket; undefined when the node has another one by now. */
  send({ command, values }: Wait, { node, stream }: Written): Promise<unknown> {
    const due = this.#due.get(stream) ?? new Map<string, Promise<unknown>>();
    this.#due.set(stream, due);
    const name = [command, ...values].join(" ");
    const shared =
      due.get(name) ??
      nextTick().then(() => {
        due.delete(name);
        const isSame = node.stream === stream && node.status === "ready";
        return isSame ? node.call(command, values) : undefined;
      });
    due.set(name, shared);
    return shared;
  }
}

/** When all replies that came together have been dealt with. */
function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
