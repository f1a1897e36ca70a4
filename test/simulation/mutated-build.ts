/**
 * The built library with one fault put into it on purpose: a copy of the build in which one piece of text is another.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FaultName } from "../../recipes/testing/index.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Text to look for in a built file, which has to be there once, and what is put in its place. How it is broken into
 * lines does not matter.
 */
export interface Mutation {
  /** Below the root of the build, without its ending. */
  file: string;
  find: string;
  put: string;
}

export class MutatedBuild {
  private constructor(readonly folder: string) {}

  static make(mutations: readonly Mutation[]): MutatedBuild {
    const folder = mkdtempSync(join(tmpdir(), "fencekeeper-mutated-"));
    const build = new MutatedBuild(folder);
    const isCode = (path: string) => !/\.(?:map|d\.ts)$/.test(path);
    cpSync(join(ROOT, "dist"), join(folder, "dist"), { recursive: true, filter: isCode });
    cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir");
    for (const mutation of mutations) build.#apply(mutation);
    return build;
  }

  /** Plays seeds until one violates something; gives what was said on standard output. */
  simulate(seeds: number, faults: readonly FaultName[] = []): Promise<string> {
    const main = join(this.folder, "dist/recipes/testing/main.js");
    const args = [main, "--seeds", `${seeds}`, "--threads", "1", "--until-violation", "--json"];
    if (faults.length > 0) args.push("--faults", faults.join(","));
    return new Promise((resolve) => {
      execFile(process.execPath, args, { maxBuffer: 2 ** 26 }, (_error, stdout, stderr) =>
        resolve(stdout === "" ? stderr : stdout),
      );
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #apply({ file, find, put }: Mutation): void {
    const path = join(this.folder, "dist", `${file}.js`);
    const escaped = find
      .trim()
      .split(/\s+/)
      .map((part) => part.replace(/[^\w]/g, "\\$&"));
    const pieces = readFileSync(path, "utf8").split(new RegExp(escaped.join("\\s+")));
    if (pieces.length !== 2) {
      this.remove();
      throw new Error(`${file} has this ${pieces.length - 1} times, not once: ${find}`);
    }
    writeFileSync(path, pieces.join(put));
  }
}
