/**
 * What the sessions' thread and the thread that uses them say to one another; `handle` is the number of a handle.
 */
import type { Granted, HandleRequest } from "../handle.js";

/** The requests of a handle, by name. */
export type Operation = "create" | "exists" | "read" | "list" | "delete" | "sync" | "setAcl";

/** To the sessions' thread. */
export type Order = { handle: number } & HandleOrder;
export type HandleOrder =
  | { do: "open"; request: HandleRequest; shared: SharedArrayBuffer; stuckMs: number }
  | { do: "request"; id: number; operation: Operation; args: [path: string, ...unknown[]] }
  | { do: "keepConfirmed"; kept: boolean }
  | { do: "close" };

/** From the sessions' thread, in the order in which it happened. */
export type News = { handle: number } & HandleNews;
export type HandleNews =
  | { is: "opened"; usable: boolean }
  /** The native client could not be loaded. */
  | { is: "failed"; message: string }
  | Answer
  | ({ is: "connected" } & Granted)
  | { is: "connecting" }
  | { is: "refused" }
  | { is: "closed" }
  | { is: "watch"; path: string }
  /** Nothing of the handle is left. */
  | { is: "ended" };

/** To the request of this id. */
export type Answer =
  | { is: "value"; id: number; value: unknown }
  | { is: "error"; id: number; code: number; message: string }
  /** Anything that is no answer of ZooKeeper: a bug. */
  | { is: "bug"; id: number; message: string };
