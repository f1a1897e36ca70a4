/** Installs missing server programs from the packages of Debian or Ubuntu. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { ServersMissingError } from "../../lib/errors.js";
import { tailOf } from "./tail.js";

/** What this machine allows. */
export interface Fetcher {
  /** Whether it has apt-get. */
  debian: boolean;
  root: boolean;
  /** Runs a command to its end; gives whether it went well and what it said. */
  run(
    command: string,
    args: string[],
    signal?: AbortSignal,
  ): Promise<{ ok: boolean; output: string }>;
}

/** @throws ServersMissingError when it failed */
export async function fetchPackages(
  packages: readonly string[],
  options: { fetcher: Fetcher; say: (line: string) => void; signal?: AbortSignal | undefined },
): Promise<void> {
  const { fetcher, say, signal } = options;
  say(`installing ${packages.join(" ")} with apt-get, once; this takes about a minute`);
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  for (const step of [["update"], install]) {
    // Another installation may be running: wait for its lock.
    const args = ["-qq", "-o", "DPkg::Lock::Timeout=300", ...step];
    const { ok, output } = await fetcher.run("apt-get", args, signal);
    signal?.throwIfAborted();
    if (!ok) {
      throw new ServersMissingError(
        `apt-get ${step[0]} failed, so these packages are missing: ${packages.join(" ")}\n${tailOf(output)}`,
      );
    }
  }
}

export async function systemFetcher(): Promise<Fetcher> {
  const debian = await access("/usr/bin/apt-get").then(
    () => true,
    () => false, // another kind of system
  );
  return { debian, root: process.getuid?.() === 0, run: runToEnd };
}

async function runToEnd(command: string, args: string[], signal?: AbortSignal) {
  const child = spawn(command, args, {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  // As Ctrl-C does: apt-get finishes the step that must not be cut.
  const interrupt = () => child.kill("SIGINT");
  signal?.addEventListener("abort", interrupt);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part: string) => {
      output += part;
    });
  }
  try {
    const [status] = await once(child, "close");
    return { ok: status === 0, output };
  } finally {
    signal?.removeEventListener("abort", interrupt);
  }
}
