/**
 * What the demo and its worker processes say to each other: one JSON object per line.
 */

/** Given to a worker as its only argument. */
export interface WorkerOrder {
  name: string;
  zookeeper: string;
  redis: string;
  sessionTimeoutMs: number;
  job: string;
  key: string;
  /** Folder to index. */
  input: string;
  fenced: boolean;
  /** After its last check, right before its write, the worker waits for {@link GO}: there it is going to be stopped. */
  pausesBeforeWrite: boolean;
}

/** The line on a worker's standard input that lets it write. */
export const GO = "go";

export type WorkerEvent =
  | { event: "queued" }
  | { event: "granted"; sequence: number; token: string; timeoutMs: number }
  | { event: "indexing"; files: number }
  | { event: "checked"; files: number; words: number }
  | { event: "told"; reason: string }
  | { event: "present"; sequence: number }
  | { event: "wrote"; outcome: string; sequence: number; fenceText: string | undefined }
  | { event: "released"; answer: string }
  | { event: "failed"; message: string };
