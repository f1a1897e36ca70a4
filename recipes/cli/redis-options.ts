/**
 * The options that say where Redis is and how it is talked to. The password comes from the environment or a file where
 * it is to stay out of the address, which every user of the machine can read in the list of processes.
 */
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { OptionError } from "../../lib/errors.js";
import type { RedisSinkOptions } from "../../lib/redis/redis-sink.js";
import { readText, readTls } from "./option-file.js";

/** As commander gives them. */
export interface RedisFlags {
  redis?: string;
  redisPasswordFile?: string;
  redisCa?: string;
  redisCert?: string;
  redisKey?: string;
  observe?: true;
}

/** Name of the variable that holds the password. */
const PASSWORD_VARIABLE = "REDIS_PASSWORD";

const OBSERVE_VARIABLE = "FENCEKEEPER_OBSERVE";

const FILES = {
  redisPasswordFile: "REDIS_PASSWORD_FILE",
  redisCa: "REDIS_CA",
  redisCert: "REDIS_CERT",
  redisKey: "REDIS_KEY",
} as const;

export function addRedisOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--redis <url>", "Redis server, redis://host:port, or rediss:// for TLS").env(
        "REDIS_URL",
      ),
    )
    .addOption(
      new Option(
        "--redis-password-file <file>",
        `file with the password for Redis (or set ${PASSWORD_VARIABLE}); a user is part of the URL`,
      ).env(FILES.redisPasswordFile),
    )
    .addOption(
      new Option("--redis-ca <file>", "for rediss://: PEM file of the authority to trust").env(
        FILES.redisCa,
      ),
    )
    .addOption(
      new Option("--redis-cert <file>", "for rediss://: PEM file of our certificate").env(
        FILES.redisCert,
      ),
    )
    .addOption(
      new Option("--redis-key <file>", "PEM file of the key to our certificate").env(
        FILES.redisKey,
      ),
    );
}

/** For commands that write. */
export function addObserveOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--observe",
      "write as without a fence, and only count what it would refuse (see status --stale)",
    ).env(OBSERVE_VARIABLE),
  );
}

/** @throws OptionError when there is no address, or a file cannot be read */
export function redisOf(
  flags: RedisFlags,
  env: NodeJS.ProcessEnv = process.env,
): Pick<RedisSinkOptions, "url" | "password" | "tls"> {
  const { redis: url, redisCa: ca, redisCert: cert, redisKey: key } = flags;
  if (!url) throw new OptionError("which Redis? Give --redis redis://host:port, or set REDIS_URL");
  const password = passwordOf(flags, env);
  const tls = readTls("redis", { ca, cert, key });
  return {
    url,
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
}

/** The same for a command that we start, wherever it goes; what comes from our environment it has anyway. */
export function redisEnvironment(flags: RedisFlags): NodeJS.ProcessEnv {
  const files = Object.entries(FILES).flatMap(([name, variable]) => {
    const file = flags[name as keyof typeof FILES];
    return file ? [[variable, resolve(file)]] : [];
  });
  return {
    ...(flags.redis === undefined ? {} : { REDIS_URL: flags.redis }),
    ...Object.fromEntries(files),
    ...(flags.observe ? { [OBSERVE_VARIABLE]: "1" } : {}),
  };
}

function passwordOf(
  { redis = "", redisPasswordFile }: RedisFlags,
  env: NodeJS.ProcessEnv,
): string | undefined {
  if (redisPasswordFile) {
    const password = readText(redisPasswordFile, "--redis-password-file").replace(/\r?\n$/, "");
    if (password === "") throw new OptionError(`${redisPasswordFile} holds no password`);
    return password;
  }
  // an address that has its own is not meant by a variable that may be there for others
  const isInUrl = /^[^/]*:\/\/[^@/?#]*:[^@/?#]+@/.test(redis);
  return isInUrl ? undefined : env[PASSWORD_VARIABLE] || undefined;
}
