import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { REDIS_IMAGE } from "../../recipes/servers/redis-plans.js";
import { ZOOKEEPER_IMAGE } from "../../recipes/servers/zookeeper-plans.js";

const folder = fileURLToPath(new URL("../../docker/", import.meta.url));
const read = (name: string) => readFileSync(folder + name, "utf8");
const COMPOSE_FILES = ["compose.yaml", "compose.ensemble.yaml"];
const CONFIGURATIONS = [
  "zookeeper/zoo.cfg",
  "zookeeper/zoo.ensemble.cfg",
  "redis/redis.conf",
  "redis/redis.persistent.conf",
];

/** Lines with a setting that have no comment above; one comment does for a row of the same kind (`server.1`, …). */
function settingsWithoutReason(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  const family = (line = "") => line.replace(/\d+=.*/, "");
  return lines.filter((line, index) => {
    const above = lines[index - 1] ?? "";
    if (line === "" || line.startsWith("#") || above.startsWith("# ")) return false;
    return !(line.startsWith("server.") && family(above) === family(line));
  });
}

describe("the servers' configurations", () => {
  it.each(CONFIGURATIONS)("%s has a reason above every line", (name) => {
    expect(settingsWithoutReason(read(name))).toEqual([]);
  });

  it("would be caught without a reason", () => {
    expect(settingsWithoutReason("# why\na=1\nb=2\n")).toEqual(["b=2"]);
  });

  it("never let Redis evict a fence", () => {
    for (const name of ["redis/redis.conf", "redis/redis.persistent.conf"]) {
      expect(read(name)).toMatch(/^maxmemory-policy noeviction$/m);
    }
    expect(read("redis/redis.persistent.conf")).toMatch(/^appendonly yes$/m);
  });
});

describe.each(COMPOSE_FILES)("%s", (name) => {
  const text = read(name);
  const images = [...text.matchAll(/^\s+image: (\S+)$/gm)].map((match) => match[1]);

  it("uses the images that the tests use", () => {
    expect(new Set(images)).toEqual(new Set([ZOOKEEPER_IMAGE, REDIS_IMAGE]));
  });

  it("checks the health of every server", () => {
    expect(text.match(/^\s+healthcheck:$/gm)).toHaveLength(images.length);
  });

  it("publishes on loopback only", () => {
    const published = [...text.matchAll(/^\s+- "?([\d.:]+):\d+"?$/gm)].map((match) => match[1]);
    expect(published.length).toBeGreaterThan(0);
    for (const address of published) expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it("mounts files that exist", () => {
    const mounted = [...text.matchAll(/^\s+- \.\/(\S+):\S+:ro$/gm)].map((match) => match[1]);
    expect(mounted.length).toBeGreaterThan(0);
    for (const file of mounted) expect(existsSync(`${folder}${file}`)).toBe(true);
  });

  const compose = spawnSync("docker", ["compose", "version"]).status === 0;
  it.skipIf(!compose)("is accepted by docker compose (skipped where there is none)", () => {
    const check = spawnSync("docker", ["compose", "-f", folder + name, "config", "--quiet"], {
      encoding: "utf8",
    });
    expect(check.stderr).toBe("");
    expect(check.status).toBe(0);
  });
});

describe("Dockerfile", () => {
  it("runs the command line as a user without rights", () => {
    const text = read("Dockerfile");
    expect(text).toMatch(/^USER node$/m);
    expect(text).toMatch(/^ENTRYPOINT \["fencekeeper"\]$/m);
  });

  it("copies only files that are there", () => {
    const allowed = read("Dockerfile.dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"));
    for (const line of allowed) expect(existsSync(`${folder}../${line.slice(1)}`)).toBe(true);
  });
});
