/** How Redis is run, as a program and as a container. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { askOverTcp } from "./ask-over-tcp.js";
import type { ContainerPlan } from "./container-server.js";
import type { ProgramPlan } from "./program-server.js";

export interface RedisServerOptions {
  /** More arguments of `redis-server`, such as `["--maxmemory", "2mb"]`. They come last, so they win. */
  args?: string[];
  /** Lines of a configuration file, which Sentinel wants; in place of the settings for a server that keeps data. */
  config?: string[];
}

export const REDIS_IMAGE = "redis:7";

/** Every write is in the file before its answer, so a killed server has it again; without waiting for the disk. */
const ARGS = ["--save", "", "--appendonly", "yes", "--appendfsync", "no"];

export function redisProgram(path: string, options: RedisServerOptions): ProgramPlan {
  return {
    name: "Redis",
    prepare: async (folder) => {
      if (options.config) await writeFile(configIn(folder), `${options.config.join("\n")}\n`);
    },
    program: async ({ folder, port }) => ({
      command: path,
      // The program is several in one, and the name decides which.
      argv0: "redis-server",
      args: [
        ...(options.config ? [configIn(folder)] : []),
        ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder],
        ...(options.config ? [] : ARGS),
        ...(options.args ?? []),
      ],
    }),
    async answers({ port, pid }) {
      const answer = await askRedis("127.0.0.1", port);
      const itsPid = /^process_id:(\d+)/m.exec(answer)?.[1];
      return isReady(answer) && (itsPid === undefined || Number(itsPid) === pid);
    },
  };
}

export function redisContainer(image: string, options: RedisServerOptions): ContainerPlan {
  return {
    name: "Redis",
    image,
    port: 6379,
    environment: {},
    // What begins with a dash the image hands to its own server: Redis, or Valkey.
    command: [...ARGS, ...(options.args ?? [])],
    answers: async ({ host, port }) => isReady(await askRedis(host, port)),
  };
}

function configIn(folder: string): string {
  return join(folder, "redis.conf");
}

function askRedis(host: string, port: number): Promise<string> {
  return askOverTcp({ host, port, request: "INFO server\r\nQUIT\r\n", timeoutMs: 1000 });
}

/** One that asks for a password is ready too; one that still loads its data is not. */
function isReady(answer: string): boolean {
  return answer.includes("redis_version:") || /^-(NOAUTH|NOPERM)/.test(answer);
}
