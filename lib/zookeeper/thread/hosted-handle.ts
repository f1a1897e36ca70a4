/**
 * One handle on the sessions' thread: carries out orders, and tells what happens.
 */
import { systemClock } from "../../clock.js";
import { NativeClientError, ZooKeeperRequestError } from "../../errors.js";
import { type ConfirmingHandle, confirming } from "../confirming-handle.js";
import { NativeClient } from "../native-client.js";
import type { HandleNews, HandleOrder } from "./messages.js";
import { SharedState } from "./shared-state.js";
import { StuckGuard } from "./stuck-guard.js";

type OpenOrder = Extract<HandleOrder, { do: "open" }>;
type RequestOrder = Extract<HandleOrder, { do: "request" }>;

export class HostedHandle {
  readonly #shared: SharedState;
  readonly #opening: Promise<ConfirmingHandle | undefined>;
  #handle: ConfirmingHandle | undefined;
  #guard: StuckGuard | undefined;

  constructor(
    order: OpenOrder,
    readonly tell: (news: HandleNews) => void,
  ) {
    this.#shared = new SharedState(order.shared);
    this.#opening = this.#open(order);
  }

  obey(order: HandleOrder): void {
    if (order.do === "request") void this.#serve(order);
    else if (order.do === "keepConfirmed") this.#handle?.keepConfirmed(order.kept);
    else if (order.do === "close") void this.#close();
  }

  async #open({ request, stuckMs }: OpenOrder): Promise<ConfirmingHandle | undefined> {
    const { tell } = this;
    const open = confirming(NativeClient.open, {
      clock: systemClock,
      moment: this.#shared.confirmed,
    });
    try {
      const handle = await open(request, {
        connected: (granted) => tell({ is: "connected", ...granted }),
        connecting: () => tell({ is: "connecting" }),
        refused: () => tell({ is: "refused" }),
        closed: () => tell({ is: "closed" }),
        watch: (path) => tell({ is: "watch", path }),
      });
      if (handle !== undefined) this.#watchOver(handle, stuckMs);
      tell({ is: "opened", usable: handle !== undefined });
      return handle;
    } catch (error) {
      if (!(error instanceof NativeClientError)) throw error;
      tell({ is: "failed", message: error.message });
      return undefined;
    }
  }

  #watchOver(handle: ConfirmingHandle, stuckMs: number): void {
    this.#handle = handle;
    this.#guard = new StuckGuard({
      ...{ clock: systemClock, handle, userSeen: this.#shared.userSeen, stuckMs },
      tell: () => this.tell({ is: "closed" }),
      close: () => void this.#close(),
    });
  }

  async #serve({ id, operation, args }: RequestOrder): Promise<void> {
    try {
      if (this.#handle === undefined) throw new Error("a request came before the handle was open");
      // The types of each operation are those of the handle on the other side.
      const ask = this.#handle[operation] as (...args: unknown[]) => Promise<unknown>;
      this.tell({ is: "value", id, value: await ask.apply(this.#handle, args) });
    } catch (error) {
      if (error instanceof ZooKeeperRequestError) {
        this.tell({ is: "error", id, code: error.zookeeperCode, message: error.message });
      } else {
        this.tell({ is: "bug", id, message: String(error) });
      }
    }
  }

  async #close(): Promise<void> {
    const handle = await this.#opening;
    this.#guard?.end();
    await handle?.close();
    // The client's timer and socket watcher are closed in the turn after this one.
    setImmediate(() => {
      this.#shared.setClosed();
      this.tell({ is: "ended" });
    });
  }
}
