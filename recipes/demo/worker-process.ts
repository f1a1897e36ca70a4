/**
 * A worker process as the demo sees it: started, listened to, stopped, continued, and gone in the end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../lib/clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { GO, type WorkerEvent, type WorkerOrder } from "./worker-protocol.js";

type EventNamed<Name extends WorkerEvent["event"]> = Extract<WorkerEvent, { event: Name }>;

export class WorkerProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #events: WorkerEvent[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(order: WorkerOrder, onEvent: (name: string, event: WorkerEvent) => void) {
    this.name = order.name;
    const script = fileURLToPath(new URL("./worker.js", import.meta.url));
    this.#child = spawn(process.execPath, [script, JSON.stringify(order)], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true, // a Ctrl-C at the terminal is ours to handle
    });
    this.#child.stdin?.on("error", () => {}); // it has ended; what it said before tells how
    const lines = createInterface({ input: this.#child.stdout ?? process.stdin });
    const read = new Promise<void>((resolve) => lines.once("close", resolve));
    lines.on("line", (line) => {
      const event = JSON.parse(line) as WorkerEvent;
      this.#events.push(event);
      onEvent(this.name, event);
      for (const listener of this.#listeners) listener();
    });
    this.#ended = read.then(() => {
      for (const listener of this.#listeners) listener();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  continue(): void {
    this.#child.kill("SIGCONT");
  }

  /** Lets a worker write that pauses before its write. It reads this when it runs. */
  letWrite(): void {
    this.#child.stdin?.write(`${GO}\n`);
  }

  /**
   * The first event of this name, also one that came before.
   *
   * @throws Error when the worker fails, ends without it, or does not come to it in time
   */
  async until<Name extends WorkerEvent["event"]>(
    name: Name,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<EventNamed<Name>> {
    const found = () => this.#events.find((each): each is EventNamed<Name> => each.event === name);
    const failed = () => this.#events.find((each) => each.event === "failed");
    let stop = () => {};
    const happened = new Promise<void>((resolve) => {
      const look = () => {
        if (found() !== undefined || failed() !== undefined) resolve();
      };
      this.#listeners.add(look);
      stop = () => this.#listeners.delete(look);
      look();
    });
    try {
      const deadline = Deadline.after(timeoutMs, systemClock);
      const result = await settleWithin(Promise.race([happened, this.#ended]), deadline, signal);
      const event = found();
      if (event !== undefined) return event;
      const failure = failed();
      const why = failure?.message ?? (result === TIMED_OUT ? "not in time" : "it has ended");
      throw new Error(`worker ${this.name} did not come to "${name}": ${why}`);
    } finally {
      stop();
    }
  }

  /** Ends the process, in whatever state it is. */
  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
      this.#child.kill("SIGKILL"); // also ends a stopped process
      await exited;
    }
  }
}
