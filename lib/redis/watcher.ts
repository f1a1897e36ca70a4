/**
 * Who watches a key, and what became of asking for that. The connection to Redis and the simulated one both answer so.
 */
import type { Failure } from "./attempt.js";

export interface Watcher {
  /** The key may have changed since it was last told. */
  changed(): void;
  /** Nothing more will be told: what came since is only seen by who looks, and then watches again. */
  lost(): void;
}

/** A watch that has begun sees every change from then on, or is `lost`; it goes on until `stop`. */
export type Watching = { kind: "watching"; stop: () => void } | Failure;
