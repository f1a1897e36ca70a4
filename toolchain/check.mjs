// Runs before the native ZooKeeper client is compiled: fetches the compiler where that is our business, and otherwise
// says in one sentence what is missing, instead of the pages that a failed build prints.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Per tool the names that it may have, the variables that name another one, and the Debian package that has it. */
const TOOLS = [
  { what: "a C compiler", names: ["cc", "gcc", "clang"], variables: ["CC"], debian: "gcc" },
  { what: "a C++ compiler", names: ["c++", "g++", "clang++"], variables: ["CXX"], debian: "g++" },
  { what: "make", names: ["make", "gmake"], variables: ["MAKE"], debian: "make" },
  {
    what: "python3",
    names: ["python3"],
    variables: ["PYTHON", "npm_config_python"],
    debian: "python3",
  },
];

/** How all the tools are installed at once, by the installer that is there. */
const INSTALLERS = [
  { program: "apt-get", command: "apt-get update && apt-get install -y g++ make python3" },
  { program: "dnf", command: "dnf install -y gcc-c++ make python3" },
  { program: "apk", command: "apk add g++ make python3" },
  { program: "zypper", command: "zypper install -y gcc-c++ make python3" },
  { program: "pacman", command: "pacman -S --needed gcc make python" },
];

function isOnPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false; // not in this folder
    }
  });
}

function missingTools() {
  return TOOLS.filter(
    ({ names, variables }) => !variables.some((name) => process.env[name]) && !names.some(isOnPath),
  );
}

const isRoot = process.getuid?.() === 0;

/** npm shows what a script prints only when it fails, so a line for people goes to the terminal itself. */
function say(line) {
  console.log(line);
  try {
    writeFileSync("/dev/tty", `${line}\n`);
  } catch {
    // no terminal, as in CI: the line is in npm's log
  }
}

/** @returns what went wrong, or undefined */
function fetchWithApt(missing) {
  const packages = missing.map(({ debian }) => debian);
  say(
    `fencekeeper: installing ${packages.join(" ")} with apt-get, once, to compile the ZooKeeper client`,
  );
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  for (const step of [["update"], install]) {
    // Another installation may be running: wait for its lock.
    const { status, stderr } = spawnSync(
      "apt-get",
      ["-qq", "-o", "DPkg::Lock::Timeout=300", ...step],
      { encoding: "utf8", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } },
    );
    if (status !== 0) return `apt-get ${step[0]} failed: ${lastLine(stderr)}`;
  }
  return undefined;
}

function lastLine(text) {
  return (text ?? "").trim().split("\n").at(-1);
}

function complain(missing, failure) {
  const names = missing.map(({ what }) => what).join(", ");
  const because = failure ? ` (${failure})` : "";
  const found = INSTALLERS.find(({ program }) => isOnPath(program));
  const sudo = isRoot ? "" : "sudo ";
  const command = found?.command.replaceAll(`${found.program} `, `${sudo}${found.program} `);
  const remedy = command ? `install them with: ${command}` : "install them and run npm again";
  console.error(
    `fencekeeper: the native ZooKeeper client cannot be compiled without ${names}${because}; ${remedy}`,
  );
}

function main() {
  // For macOS and Windows the client brings compiled code.
  if (process.platform === "darwin" || process.platform === "win32") return 0;
  const missing = missingTools();
  if (missing.length === 0) return 0;
  const mayFetch =
    isRoot && existsSync("/usr/bin/apt-get") && process.env.FENCEKEEPER_FETCH !== "never";
  const failure = mayFetch ? fetchWithApt(missing) : undefined;
  const still = missingTools();
  if (still.length === 0) return 0;
  complain(still, failure);
  return 1;
}

process.exitCode = main();
