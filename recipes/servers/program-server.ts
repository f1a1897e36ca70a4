/** A server that is a program of this machine: on a free loopback port, with its data in a temporary folder. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { freePort } from "./free-port.js";
import { Guard, type GuardedProgram } from "./guard.js";
import type { Server, StartContext } from "./server.js";
import { ServerStartError } from "./server-start-error.js";
import { tailOfFile } from "./tail.js";

/** How one kind of server is run as a program. */
export interface ProgramPlan {
  /** For messages. */
  name: string;
  /** Puts files into the folder before the first start. */
  prepare(folder: string): Promise<void>;
  program(place: { folder: string; port: number }): Promise<Omit<GuardedProgram, "log">>;
  /** Whether our own server, and not somebody else's on the same port, answers there. */
  answers(place: { folder: string; port: number; pid: number }): Promise<boolean>;
}

const HOST = "127.0.0.1";
const BIND_ATTEMPTS = 5;
const PORT_TAKEN = /already in use|bind.*in use|EADDRINUSE/i;
const POLL_MS = 25;

export class ProgramServer implements Server {
  readonly source = "programs";
  readonly host = HOST;
  #port = 0;

  private constructor(
    private readonly plan: ProgramPlan,
    private readonly guard: Guard,
    private readonly context: StartContext,
  ) {}

  static async start(plan: ProgramPlan, context: StartContext): Promise<ProgramServer> {
    context.signal?.throwIfAborted();
    const guard = await Guard.open({ folderPrefix: join(tmpdir(), "fencekeeper-") });
    const server = new ProgramServer(plan, guard, context);
    try {
      await plan.prepare(guard.folder);
      await server.#launch(context.signal);
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number | undefined {
    return this.guard.pid;
  }

  async pause(): Promise<void> {
    this.#mustRun();
    await this.guard.signal("SIGSTOP");
  }

  async resume(): Promise<void> {
    this.#mustRun();
    await this.guard.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    await this.guard.signal("SIGKILL");
    const deadline = Deadline.after(this.context.startTimeoutMs, systemClock);
    while (this.pid !== undefined) {
      if (deadline.passed) throw new ServerStartError(`${this.plan.name} does not end`);
      await sleep(POLL_MS);
    }
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.#launch();
  }

  logTail(): Promise<string> {
    return tailOfFile(this.#log);
  }

  stop(): Promise<void> {
    return this.guard.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** A fault that hits nothing would make a test pass for the wrong reason. */
  #mustRun(): void {
    if (this.pid === undefined) throw new ServerStartError(`${this.plan.name} does not run`);
  }

  get #log(): string {
    return join(this.guard.folder, "log");
  }

  /** Starts it, on the port that it had where that can be, and waits until it answers. */
  async #launch(signal?: AbortSignal): Promise<void> {
    const deadline = Deadline.after(this.context.startTimeoutMs, systemClock);
    for (let attempt = 1; ; attempt++) {
      if (this.#port === 0) this.#port = await freePort();
      const place = { folder: this.guard.folder, port: this.#port };
      await this.guard.start({ ...(await this.plan.program(place)), log: this.#log });
      if (await this.#comesUp(deadline, signal)) return;
      const log = await this.logTail();
      const taken = PORT_TAKEN.test(log);
      if (!taken || attempt === BIND_ATTEMPTS || deadline.passed) {
        const what = deadline.passed
          ? `did not answer within ${this.context.startTimeoutMs} ms`
          : `ended with ${this.guard.lastExit} while it started`;
        throw new ServerStartError(`${this.plan.name} ${what}; the end of its log:\n${log}`);
      }
      this.#port = 0;
    }
  }

  /** False when it ended, or the deadline passed. */
  async #comesUp(deadline: Deadline, signal?: AbortSignal): Promise<boolean> {
    while (!deadline.passed) {
      signal?.throwIfAborted();
      const { pid } = this;
      if (pid === undefined) return false;
      const answers = await this.plan.answers({ folder: this.guard.folder, port: this.#port, pid });
      if (answers && this.pid === pid) return true;
      await sleep(POLL_MS);
    }
    return false;
  }
}
