/** Ends a process tree: asks, waits the grace, kills, and knows when nobody is left. */
import type { Clock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { FencekeeperError } from "../../lib/errors.js";
import type { ProcessEntry } from "./process-entry.js";
import type { ProcessTree } from "./process-tree.js";

/** Time between two looks, in milliseconds: soon at first, since most processes end at once when asked. */
const PAUSE_MS = { first: 2, longest: 50 };

/** A look at a machine with very many processes takes long; looking takes at most about a quarter of our time. */
const PAUSE_PER_LOOK = 3;

/** Processes of the command are still there, and we are not allowed to end them: they run as another user. */
export class CommandNotStoppedError extends FencekeeperError {
  readonly code = "COMMAND_NOT_STOPPED";
  override readonly definite = false;

  constructor(readonly pids: readonly number[]) {
    super(
      `processes of the command run on as another user and cannot be ended: ${pids.join(", ")}`,
    );
  }
}

export interface EndingRequest {
  signal: NodeJS.Signals;
  /** Time between the signal and KILL, in milliseconds. */
  graceMs: number;
}

export class TreeEnding {
  readonly #tree: ProcessTree;
  readonly #clock: Clock;
  #killAt: Deadline;
  #gone: Promise<void> | undefined;

  constructor(tree: ProcessTree, clock: Clock) {
    this.#tree = tree;
    this.#clock = clock;
    this.#killAt = Deadline.after(Number.POSITIVE_INFINITY, clock);
  }

  /**
   * Ends everybody; resolves when nobody is left. A second request may only make the grace shorter.
   *
   * @throws CommandNotStoppedError when only processes are left that we may not signal
   */
  async end({ signal, graceMs }: EndingRequest): Promise<void> {
    this.#killAt = this.#killAt.atMost(graceMs);
    this.#tree.ask(signal);
    this.#gone ??= this.#untilGone();
    await this.#gone;
  }

  /**
   * After the command's own end: gives the rest a moment to end by itself, as the `tee` of `exec > >(tee log)` does
   * once it has written everything, then ends it.
   *
   * @returns how many had to be ended
   */
  async endLeftovers(settleMs: number, request: EndingRequest): Promise<number> {
    // Already being ended: those are not left over, they have been asked before.
    if (this.#gone === undefined) {
      if (await this.#settles(Deadline.after(settleMs, this.#clock))) return 0;
    }
    const left = this.#gone === undefined ? this.#tree.members().length : 0;
    await this.end(request);
    return left;
  }

  /** Tells whether nobody is left, at the latest when the time is over or somebody asks for the end. */
  async #settles(until: Deadline): Promise<boolean> {
    for await (const members of this.#looks()) {
      if (members.length > 0 && (until.passed || this.#gone !== undefined)) return false;
    }
    return true;
  }

  async #untilGone(): Promise<void> {
    try {
      for await (const members of this.#looks()) {
        // Everybody seen, again and again: who was forked between look and signal is caught by the next look.
        if (this.#killAt.passed) this.#kill(members);
        else this.#tree.resumeStopped(members);
      }
    } catch (error) {
      this.#tree.signalGroup("SIGKILL"); // whatever went wrong with looking: at least these are not left running
      throw error;
    }
  }

  /**
   * Looks at the tree until nobody is left, with pauses that grow, and start afresh when killing begins.
   *
   * Empty means two looks in a row: reading a table is not one step, and a process may fork and end while it is read,
   * the parent no longer there and the child not yet. The pause between them makes the two independent.
   */
  async *#looks(): AsyncGenerator<readonly ProcessEntry[], void> {
    let pauseMs = PAUSE_MS.first;
    let killing = false;
    for (let emptyLooks = 0; ; ) {
      const startMs = this.#clock.nowMs();
      const members = this.#tree.members();
      const lookMs = this.#clock.nowMs() - startMs;
      yield members;
      emptyLooks = members.length === 0 ? emptyLooks + 1 : 0;
      if (emptyLooks === 2) break;
      const startsKilling: boolean = !killing && this.#killAt.passed;
      killing ||= startsKilling;
      const growsFrom = startsKilling || emptyLooks > 0 ? PAUSE_MS.first : pauseMs;
      await this.#pause(Math.max(growsFrom, lookMs * PAUSE_PER_LOOK));
      pauseMs = Math.min(growsFrom * 2, PAUSE_MS.longest);
    }
    this.#tree.close();
  }

  /** Not past the end of the grace, which is the moment to kill. */
  #pause(pauseMs: number): Promise<void> {
    const graceMs = this.#killAt.remainingMs() || Number.POSITIVE_INFINITY;
    return new Promise((resolve) => {
      this.#clock.after(Math.min(pauseMs, graceMs), resolve);
    });
  }

  #kill(members: readonly ProcessEntry[]): void {
    const refused = this.#tree.kill(members);
    if (refused.length > 0 && refused.length === members.length) {
      throw new CommandNotStoppedError(refused.map((member) => member.pid));
    }
  }
}
