/**
 * What is made of the package's client when it closes its socket inside a call. The package is a hand-made one here:
 * a real one does this only when servers are killed under load.
 */
import { expect, it } from "vitest";
import { ConnectionLossError } from "../../lib/errors.js";
import { NativeClient } from "../../lib/zookeeper/native-client.js";
import type { Package } from "../../lib/zookeeper/package-client.js";

const CONNECTED = 3;
const SOCKET_CLOSED = 999;
const CONNECTION_LOSS = -4;
const INVALID_STATE = -9;
const CLOSING = -116;

/** A package whose clients answer as the real ones do before they are started, and lose their socket when asked to. */
function handMadePackage() {
  const made: Client[] = [];
  class Client {
    state = 0;
    readonly client_id = "1";
    readonly client_password = "secret";
    readonly timeout = 4_000;
    readonly waiting: ((code: number, text: string) => void)[] = [];
    breaksNext = false;

    constructor() {
      made.push(this);
    }

    init(): void {
      this.state = CONNECTED;
    }

    close(): void {
      this.state = 0;
      for (const done of this.waiting.splice(0)) done(CLOSING, "closing");
    }

    on(): void {}

    a_sync(_path: string, done: (code: number, text: string) => void): number {
      if (this.state === 0) return INVALID_STATE;
      if (this.breaksNext) {
        this.state = SOCKET_CLOSED;
        return CONNECTION_LOSS;
      }
      this.waiting.push(done);
      return 0;
    }
  }
  return { load: async () => Client as unknown as Package, made };
}

const SILENT = { connected() {}, connecting() {}, refused() {}, closed() {}, watch() {} };
const TARGET = { address: "127.0.0.1:1", sessionTimeoutMs: 4_000 };

it("a session whose client is being replaced is not over: its requests are lost with the connection", async () => {
  const { load, made } = handMadePackage();
  const handle = await NativeClient.open(TARGET, SILENT, load);
  const waiting = handle?.sync("/waiting");
  if (made[0]) made[0].breaksNext = true;
  const requests = [waiting, handle?.sync("/breaks"), handle?.sync("/before the next begins")];
  for (const request of requests) await expect(request).rejects.toThrow(ConnectionLossError);
  const [, second] = made;
  await expect.poll(() => second?.state).toBe(CONNECTED);
  const later = handle?.sync("/later");
  second?.waiting[0]?.(0, "ok");
  await later;
});
