/**
 * A process of its own that claims a job with the built library and holds it until it is killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const LIBRARY = fileURLToPath(new URL("../../dist/recipes/index.js", import.meta.url));

const TEXT = `
import { claim, ZooKeeper } from ${JSON.stringify(LIBRARY)};
process.stdin.on("end", () => process.exit()).resume(); // the test is gone
const { connect, sessionTimeoutMs, job, holder } = JSON.parse(process.argv[1]);
const zookeeper = new ZooKeeper({ connect, sessionTimeoutMs });
const answer = await claim({ zookeeper, job, holder });
console.log(answer.outcome === "granted" ? answer.claim.token.text : answer.outcome);
`;

export interface HolderOptions {
  connect: string;
  sessionTimeoutMs: number;
  job: string;
  holder: string;
}

export class HolderProcess {
  private constructor(
    readonly child: ChildProcess,
    /** Canonical text of its token. */
    readonly token: string,
  ) {}

  static async start(options: HolderOptions): Promise<HolderProcess> {
    const args = ["--input-type=module", "--eval", TEXT, JSON.stringify(options)];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    if (child.stdout === null) throw new Error("the holder has no output");
    const [token] = await once(createInterface(child.stdout), "line");
    return new HolderProcess(child, token);
  }

  /** Ends it as a crash does: its session is not closed. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}
