/**
 * A simulated process with two threads, as a real one has: the one that runs the user's code, and the one that the
 * session lives on. A stop holds both up, a busy loop in the user's code only the first, a crash ends both.
 */
import { Lane } from "./lane.js";
import type { Scheduler } from "./scheduler.js";

export class SimulatedProcess {
  /** Runs the recipes and the user's code. */
  readonly main: Lane;
  /** Runs the client's handle. */
  readonly sessions: Lane;
  #crashed = false;

  constructor(
    readonly name: string,
    readonly scheduler: Scheduler,
  ) {
    this.main = new Lane(scheduler);
    this.sessions = new Lane(scheduler);
  }

  get isCrashed(): boolean {
    return this.#crashed;
  }

  /** As SIGSTOP does. */
  stop(): void {
    this.main.hold("stopped");
    this.sessions.hold("stopped");
  }

  continue(): void {
    this.sessions.letGo("stopped");
    this.main.letGo("stopped");
  }

  /** As a busy loop on the main thread does. */
  block(): void {
    this.main.hold("busy");
  }

  unblock(): void {
    this.main.letGo("busy");
  }

  /** As SIGKILL does. */
  crash(): void {
    this.#crashed = true;
    this.main.end();
    this.sessions.end();
  }
}
