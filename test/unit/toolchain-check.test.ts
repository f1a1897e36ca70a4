import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";

const check = fileURLToPath(new URL("../../toolchain/check.mjs", import.meta.url));

/** Runs the check where only these programs are on the path. */
function checkWith(programs: string[], env: NodeJS.ProcessEnv = {}) {
  const folder = mkdtempSync(join(tmpdir(), "fencekeeper-path-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of programs) writeFileSync(join(folder, name), "", { mode: 0o755 });
  symlinkSync(process.execPath, join(folder, "node"));
  const { status, stdout, stderr } = spawnSync(process.execPath, [check], {
    encoding: "utf8",
    env: { PATH: folder, FENCEKEEPER_FETCH: "never", ...env },
  });
  return { status, stdout, stderr };
}

// For macOS and Windows the client brings compiled code, so nothing is checked there.
describe.skipIf(process.platform !== "linux")("the check of the build tools", () => {
  it("says nothing when all are there", () => {
    expect(checkWith(["cc", "c++", "make", "python3"])).toEqual({
      status: 0,
      stdout: "",
      stderr: "",
    });
  });

  it("takes the user's word for tools of other names", () => {
    const env = { CC: "zig cc", CXX: "zig c++", PYTHON: "/opt/python" };
    expect(checkWith(["make"], env).status).toBe(0);
  });

  it("ends in one sentence with what is missing and the command that installs it", () => {
    const { status, stdout, stderr } = checkWith(["cc", "apt-get"]);
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(
      /^fencekeeper: [^\n]* without a C\+\+ compiler, make, python3; install them with: [^\n]*\n$/,
    );
    expect(stderr.replaceAll("sudo ", "")).toMatch(
      /: apt-get update && apt-get install -y g\+\+ make python3\n$/,
    );
  });

  it.each([
    ["dnf", "dnf install -y gcc-c++ make python3"],
    ["apk", "apk add g++ make python3"],
  ])("names the command of %s where that is the installer", (installer, command) => {
    expect(checkWith([installer]).stderr).toContain(command);
  });

  it("still says what is missing where it knows no installer", () => {
    const { status, stderr } = checkWith(["gcc", "g++", "make"]);
    expect(status).toBe(1);
    expect(stderr).toBe(
      "fencekeeper: the native ZooKeeper client cannot be compiled without python3; install them and run npm again\n",
    );
  });
});
