import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ServersMissingError } from "../../lib/errors.js";
import type { Fetcher } from "../../recipes/servers/fetch-programs.js";
import { type FoundPrograms, findPrograms } from "../../recipes/servers/find-programs.js";
import { providePrograms } from "../../recipes/servers/provide-programs.js";

const NOTHING: FoundPrograms = { java: undefined, zookeeperJars: undefined, redis: undefined };
const ALL: FoundPrograms = { java: "/bin/java", zookeeperJars: "/z.jar", redis: "/bin/redis" };

/** A machine on which the fetched programs are there once apt-get has run. */
function machine(options: {
  debian: boolean;
  root: boolean;
  aptWorks?: boolean;
  found?: FoundPrograms;
}) {
  const commands: string[] = [];
  const said: string[] = [];
  let found = options.found ?? NOTHING;
  const fetcher: Fetcher = {
    debian: options.debian,
    root: options.root,
    async run(command, args) {
      commands.push([command, ...args].join(" "));
      if (options.aptWorks === false) return { ok: false, output: "E: no network\n" };
      if (args.includes("install")) found = ALL;
      return { ok: true, output: "" };
    },
  };
  const provide = (
    env: NodeJS.ProcessEnv = {},
    kinds: ("zookeeper" | "redis")[] = ["zookeeper", "redis"],
  ) =>
    providePrograms(kinds, {
      env,
      fetcher,
      find: async () => found,
      say: (line) => said.push(line),
    });
  return { commands, said, provide };
}

describe("missing programs", () => {
  it("are fetched by root on Debian, and it says so", async () => {
    const { commands, said, provide } = machine({ debian: true, root: true });
    const programs = await provide();
    expect(programs.zookeeper()).toEqual({ java: "/bin/java", classPath: "/z.jar" });
    expect(programs.redis()).toBe("/bin/redis");
    expect(commands).toEqual([
      expect.stringMatching(/^apt-get -qq .*update$/),
      expect.stringMatching(
        /^apt-get -qq .*install -y --no-install-recommends default-jre-headless libzookeeper-java redis-tools$/,
      ),
    ]);
    expect(said).toEqual([
      expect.stringContaining("installing default-jre-headless libzookeeper-java redis-tools"),
    ]);
  });

  it("are the only ones that are fetched", async () => {
    const { commands, provide } = machine({
      debian: true,
      root: true,
      found: { ...ALL, redis: undefined },
    });
    await provide();
    expect(commands.at(-1)).toMatch(/--no-install-recommends redis-tools$/);
  });

  it("do not matter when they belong to a server that is not wanted", async () => {
    const { commands, provide } = machine({
      debian: true,
      root: true,
      found: { ...NOTHING, redis: "/bin/redis" },
    });
    await provide({}, ["redis"]);
    expect(commands).toEqual([]);
  });

  it("are not fetched by another user, who gets the one command", async () => {
    const { commands, provide } = machine({ debian: true, root: false });
    const end = provide();
    await expect(end).rejects.toThrow(ServersMissingError);
    await expect(end).rejects.toThrow(
      "sudo apt-get update && sudo apt-get install -y --no-install-recommends " +
        "default-jre-headless libzookeeper-java redis-tools",
    );
    expect(commands).toEqual([]);
  });

  it("are not fetched when the user forbids it", async () => {
    const { commands, provide } = machine({ debian: true, root: true });
    await expect(provide({ FENCEKEEPER_FETCH: "never" })).rejects.toThrow(
      "Install with: apt-get update && apt-get install",
    );
    expect(commands).toEqual([]);
  });

  it("are named where there is no apt-get, with Docker and own servers as the other ways", async () => {
    const { commands, provide } = machine({ debian: false, root: true });
    await expect(provide()).rejects.toThrow(
      /java, the jars of ZooKeeper, redis-server not found.*start Docker.*addresses/,
    );
    expect(commands).toEqual([]);
  });

  it("end in the last words of apt-get when that fails", async () => {
    const { provide } = machine({ debian: true, root: true, aptWorks: false });
    await expect(provide()).rejects.toThrow(/apt-get update failed.*\n.*E: no network/);
  });
});

describe("finding programs", () => {
  it("takes the jars of an unpacked ZooKeeper, and Redis by either of its names", async () => {
    const folder = await mkdtemp(join(tmpdir(), "fencekeeper-find-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, "lib"));
    await writeFile(join(folder, "lib", "zookeeper-3.9.3.jar"), "");
    await writeFile(join(folder, "redis-check-rdb"), "", { mode: 0o755 });
    const env = { PATH: folder, ZOOKEEPER_HOME: folder };
    expect(await findPrograms(env)).toMatchObject({
      zookeeperJars: join(folder, "lib", "*"),
      redis: join(folder, "redis-check-rdb"),
    });
    await writeFile(join(folder, "redis-server"), "", { mode: 0o755 });
    expect((await findPrograms(env)).redis).toBe(join(folder, "redis-server"));
  });
});
