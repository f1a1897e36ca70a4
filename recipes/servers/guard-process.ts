/** The text of a small process of its own that owns a server, and ends it when our process is gone. */
import type { ChildProcess } from "node:child_process";

/** What the guard is asked to do, one at a time. */
export type GuardOrder =
  | { do: "own"; folderPrefix?: string; containerLabel?: string; network?: string | undefined }
  | { do: "start"; command: string; argv0: string; args: string[]; log: string }
  | { do: "signal"; signal: NodeJS.Signals };

/** What it answers, and the news that it brings unasked. */
export type GuardNews =
  | { is: "done"; folder?: string | undefined }
  | { is: "started"; pid: number }
  | { is: "failed"; why: string }
  | { is: "exited"; status: string };

/**
 * Runs in the guard and nowhere else: it is handed over as text, because a file would have to be a `.ts` under test and
 * a `.js` in the package. So it may use nothing from outside its own braces.
 *
 * As the server's parent it cannot mistake another process for it: a process id is not used again before its parent
 * has noticed the end.
 */
function guard(): void {
  const { spawn, spawnSync } = process.getBuiltinModule("node:child_process");
  const { closeSync, mkdtempSync, openSync, rmSync } = process.getBuiltinModule("node:fs");
  let folder: string | undefined;
  let containerLabel: string | undefined;
  let network: string | undefined;
  let server: ChildProcess | undefined;

  const tell = (news: GuardNews) => {
    // An error here means that the other side has gone; "disconnect" tells that too.
    if (process.connected) process.send?.(news, undefined, undefined, () => {});
  };
  const start = (order: Extract<GuardOrder, { do: "start" }>) => {
    const log = openSync(order.log, "w");
    const started = spawn(order.command, order.args, {
      argv0: order.argv0,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    started.on("spawn", () => tell({ is: "started", pid: started.pid ?? 0 }));
    started.on("error", (error) => tell({ is: "failed", why: error.message }));
    started.on("exit", (status, signal) => {
      server = undefined;
      tell({ is: "exited", status: signal ?? `status ${status}` });
    });
    server = started;
  };
  const removeContainers = () => {
    const docker = (...args: string[]) => spawnSync("docker", args, { encoding: "utf8" }).stdout;
    const ids = docker("ps", "-aq", "--filter", `label=${containerLabel}`) ?? ""; // none without the docker command
    const found = ids.split("\n").filter((id) => id !== "");
    if (found.length > 0) docker("rm", "-fv", ...found);
    if (network) docker("network", "rm", network); // refused while others are in it: the last one succeeds
  };
  const removeAll = () => {
    // Files may still appear while the kernel takes the server apart.
    if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    if (!containerLabel) process.exit(0);
    removeContainers();
    // The daemon may have been creating one when its client died.
    setTimeout(() => {
      removeContainers();
      process.exit(0);
    }, 2000);
  };

  process.title = "fencekeeper-guard"; // else a list of processes shows this whole text
  // The end of our process is what counts; a signal that is meant for everybody says nothing about it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
  process.on("disconnect", () => {
    if (!server) return removeAll();
    server.on("exit", removeAll);
    server.kill("SIGKILL"); // also ends a stopped one; its data go anyway
  });
  process.on("message", (order: GuardOrder) => {
    if (order.do === "start") return start(order);
    if (order.do === "signal") server?.kill(order.signal);
    else {
      ({ containerLabel, network } = order);
      // Made here, so that there is no moment in which the folder exists and nobody would remove it.
      if (order.folderPrefix) folder = mkdtempSync(order.folderPrefix);
    }
    tell({ is: "done", folder });
  });
}

/** For `node --eval`. Some runners of TypeScript wrap every function in a helper of this name. */
export const GUARD_TEXT = `const __name = (wrapped) => wrapped; (${guard})();`;
