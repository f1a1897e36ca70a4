/** Our end of the guard: the process that owns a server and ends it whatever happens to us. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { processSystem } from "../command/process-system.js";
import { GUARD_TEXT, type GuardNews, type GuardOrder } from "./guard-process.js";
import { ServerStartError } from "./server-start-error.js";

/** What the guard makes or knows, and removes at its end. */
export interface GuardedThings {
  /** Start of the name of a temporary folder that it makes. */
  folderPrefix?: string;
  /** `name=value` of a label that only our containers have. */
  containerLabel?: string;
  /** A network of these containers; the last one that leaves it removes it. */
  network?: string | undefined;
}

export interface GuardedProgram {
  command: string;
  /** The name that the program sees itself called by. */
  argv0: string;
  args: string[];
  log: string;
}

export class Guard {
  /** The server's process while it runs. */
  pid: number | undefined;
  /** How the last one ended. */
  lastExit: string | undefined;
  /** Only where one was asked for. */
  folder = "";
  #pidStartedAt: number | undefined;
  #answered: ((news: GuardNews) => void) | undefined;

  private constructor(readonly process: ChildProcess) {
    process.on("message", (news: GuardNews) => this.#hear(news));
    process.on("exit", () => this.#hear({ is: "failed", why: "its guard process has ended" }));
    // It never keeps our process alive; its end is the sign to clean up.
    process.unref();
    process.channel?.unref();
  }

  static async open(things: GuardedThings): Promise<Guard> {
    const child = spawn(process.execPath, ["--input-type=commonjs", "--eval", GUARD_TEXT], {
      // A session of its own: Ctrl-C and a closed terminal reach us, not the guard.
      detached: true,
      cwd: "/",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      // Options for our Node (a loader, a debugger) are not meant for it.
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    await once(child, "spawn");
    const guard = new Guard(child);
    const news = await guard.#ask({ do: "own", ...things });
    if (news.is === "done") guard.folder = news.folder ?? "";
    return guard;
  }

  /** @throws ServerStartError when the program cannot be started at all */
  async start(program: GuardedProgram): Promise<void> {
    this.lastExit = undefined;
    await this.#ask({ do: "start", ...program });
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    await this.#ask({ do: "signal", signal });
  }

  /** Ends without removing containers: they are gone already. */
  async release(): Promise<void> {
    if (this.process.connected) await this.#ask({ do: "own" });
    await this.close();
  }

  /** Ends the server and removes all; settles when that is done. */
  async close(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.ref();
      const ended = once(this.process, "exit");
      if (this.process.connected) this.process.disconnect();
      await ended;
    }
    await this.#finishItsWork();
  }

  /** Only when somebody killed the guard: its server runs on then. */
  async #finishItsWork(): Promise<void> {
    if (this.process.exitCode === 0) return;
    const { pid } = this;
    if (pid !== undefined && this.#pidStartedAt !== undefined) {
      // The same start, so the same process and not a later one with its number.
      if (processSystem.startedAt(pid) === this.#pidStartedAt) processSystem.kill(pid, "SIGKILL");
    }
    if (this.folder) await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #ask(order: GuardOrder): Promise<GuardNews> {
    // While we wait for the answer our process must not end for want of work.
    this.process.channel?.ref();
    try {
      const news = await new Promise<GuardNews>((resolve) => {
        this.#answered = resolve;
        this.process.send(order, (error) => {
          if (error) this.#hear({ is: "failed", why: error.message });
        });
      });
      if (news.is === "failed") throw new ServerStartError(`the server's process: ${news.why}`);
      return news;
    } finally {
      this.process.channel?.unref();
    }
  }

  #hear(news: GuardNews): void {
    if (news.is === "exited") {
      this.pid = undefined;
      this.lastExit = news.status;
      return;
    }
    if (news.is === "started") {
      this.pid = news.pid;
      this.#pidStartedAt = processSystem.startedAt(news.pid);
    }
    this.#answered?.(news);
    this.#answered = undefined;
  }
}
