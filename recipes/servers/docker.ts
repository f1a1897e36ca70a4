/** The Docker daemon, if there is one, through the `testcontainers` package, if it is installed. */
import type { ContainerRuntimeClient } from "testcontainers";
import { systemClock } from "../../lib/clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import type { StartContext } from "./server.js";
import { SourceMissingError } from "./source-missing-error.js";

export interface Docker {
  testcontainers: typeof import("testcontainers");
  client: ContainerRuntimeClient;
  /** Whether testcontainers removes containers by itself when our process is gone. */
  cleansUp: boolean;
}

/** A daemon that takes longer to say who it is would make the servers unbearably slow too. */
const ANSWER_TIMEOUT_MS = 5_000;
const PULL_TIMEOUT_MS = 300_000;

/** @throws SourceMissingError with the reason for people */
export async function openDocker(
  signal: AbortSignal | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Docker> {
  const testcontainers = await import("testcontainers").catch((cause: unknown) => {
    throw new SourceMissingError("the package testcontainers is not installed", { cause });
  });
  const deadline = Deadline.after(ANSWER_TIMEOUT_MS, systemClock);
  const looking = testcontainers.getContainerRuntimeClient().catch((cause: unknown) => {
    throw new SourceMissingError("no Docker daemon answers", { cause });
  });
  const client = await settleWithin(looking, deadline, signal);
  if (client === TIMED_OUT) throw new SourceMissingError("the Docker daemon does not answer");
  return { testcontainers, client, cleansUp: env.TESTCONTAINERS_RYUK_DISABLED !== "true" };
}

/** @throws SourceMissingError when it is not here and cannot be pulled */
export async function ensureImage(
  { client, testcontainers }: Docker,
  image: string,
  { say, signal }: StartContext,
): Promise<void> {
  const name = testcontainers.ImageName.fromString(image);
  if (await client.image.exists(name)) return;
  say(`pulling the image ${image}`);
  const deadline = Deadline.after(PULL_TIMEOUT_MS, systemClock);
  const pulling = client.image.pull(name).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SourceMissingError(`the image ${image} cannot be pulled (${why})`, { cause });
  });
  if ((await settleWithin(pulling, deadline, signal)) === TIMED_OUT) {
    throw new SourceMissingError(`the image ${image} was not pulled within five minutes`);
  }
}
