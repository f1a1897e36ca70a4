import { describe, expect, it } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { chooseSources, startFromFirst } from "../../recipes/servers/choose-source.js";
import { startServers, startZooKeeper } from "../../recipes/servers/start-servers.js";

describe("the choice of a source", () => {
  it("takes addresses that are given, then Docker, then programs", () => {
    expect(chooseSources(undefined, {})).toEqual({
      sources: ["docker", "programs"],
      useGiven: true,
    });
  });

  it.each(["docker", "programs"] as const)(
    "FENCEKEEPER_SERVERS=%s leaves no other way to start",
    (name) => {
      expect(chooseSources(undefined, { FENCEKEEPER_SERVERS: name })).toEqual({
        sources: [name],
        useGiven: true,
      });
    },
  );

  it("lets the option win over the environment and over given addresses", () => {
    expect(chooseSources("programs", { FENCEKEEPER_SERVERS: "docker" })).toEqual({
      sources: ["programs"],
      useGiven: false,
    });
  });

  it("refuses a source that it does not know", () => {
    expect(() => chooseSources(undefined, { FENCEKEEPER_SERVERS: "podman" })).toThrow(
      /FENCEKEEPER_SERVERS is docker or programs; it is "podman"/,
    );
  });
});

describe("falling through the sources", () => {
  it("goes on to the next one with a line that says why", async () => {
    const lines: string[] = [];
    const end = await startFromFirst(["docker", "programs"], {
      async start(source) {
        if (source === "docker") throw new Error("no Docker daemon answers");
        return "started";
      },
      say: (line) => lines.push(line),
    });
    expect(end).toEqual({ source: "programs", started: "started" });
    expect(lines).toEqual(["not with docker: no Docker daemon answers; trying programs"]);
  });

  it("fails with the reason of the last one, so a forced source does not fall through", async () => {
    const start = async () => {
      throw new Error("no Docker daemon answers");
    };
    await expect(startFromFirst(["docker"], { start, say: () => {} })).rejects.toThrow(
      "no Docker daemon answers",
    );
  });

  it("tries nothing more once the caller has cancelled", async () => {
    const cancelled = new AbortController();
    const tried: string[] = [];
    const end = startFromFirst(["docker", "programs"], {
      async start(source) {
        tried.push(source);
        cancelled.abort(new Error("cancelled by the caller"));
        throw new Error("whatever came of it");
      },
      say: () => {},
      signal: cancelled.signal,
    });
    await expect(end).rejects.toThrow("cancelled by the caller");
    expect(tried).toEqual(["docker"]);
  });
});

describe("servers that are given", () => {
  const given = {
    zookeeper: "zk1.example:2182,zk2.example:2182/app",
    redis: "redis://cache.example",
  };

  it("are used as they are, and nothing is started", async () => {
    const said: string[] = [];
    const servers = await startServers({ given, env: {}, say: (line) => said.push(line) });
    expect(servers.source).toBe("given");
    expect(servers.zookeeper.connect).toBe(given.zookeeper);
    expect([servers.zookeeper.host, servers.zookeeper.port]).toEqual(["zk1.example", 2182]);
    expect(servers.redis.url).toBe(given.redis);
    expect([servers.redis.host, servers.redis.port]).toEqual(["cache.example", 6379]);
    expect(said).toEqual([]);
    await servers.stop();
  });

  it("refuse to be paused, continued, killed or restarted", async () => {
    const { zookeeper } = await startServers({ given, env: {} });
    for (const fault of ["pause", "resume", "kill", "restart"] as const) {
      await expect(zookeeper[fault]()).rejects.toThrow(OptionError);
    }
  });

  it("must have addresses when only they may be used", async () => {
    await expect(startZooKeeper({ source: "given", env: {} })).rejects.toThrow(OptionError);
  });
});
