/** A server in a container, through the `testcontainers` package. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { StartedTestContainer } from "testcontainers";
import { systemClock } from "../../lib/clock.js";
import { Deadline, settleWithin, TIMED_OUT } from "../../lib/deadline.js";
import { type Docker, ensureImage } from "./docker.js";
import { Guard } from "./guard.js";
import type { Server, StartContext } from "./server.js";
import { ServerStartError } from "./server-start-error.js";
import { tailOf } from "./tail.js";

/** How one kind of server is run in a container. */
export interface ContainerPlan {
  /** For messages. */
  name: string;
  image: string;
  /** Inside the container. */
  port: number;
  environment: Record<string, string>;
  /** Undefined for the image's own. */
  command: string[] | undefined;
  /** A folder whose contents are copied in before it starts. */
  seed?: { from: string; to: string } | undefined;
  /** A network that it joins, and the name by which the others there find it. */
  network?: { name: string; alias: string } | undefined;
  answers(place: { host: string; port: number }): Promise<boolean>;
}

const LABEL = "fencekeeper.server";
const POLL_MS = 50;
const PAUSE_TIMEOUT_MS = 10_000;

export class ContainerServer implements Server {
  readonly source = "docker";
  readonly pid = undefined;

  private constructor(
    private readonly plan: ContainerPlan,
    private readonly docker: Docker,
    private readonly container: StartedTestContainer,
    private readonly guard: Guard | undefined,
    private readonly context: StartContext,
  ) {}

  static async start(
    plan: ContainerPlan,
    docker: Docker,
    context: StartContext,
  ): Promise<ContainerServer> {
    await ensureImage(docker, plan.image, context);
    const id = randomUUID();
    // Without its own clean-up process, testcontainers would leave containers behind when ours is killed.
    const guard = docker.cleansUp
      ? undefined
      : await Guard.open({ containerLabel: `${LABEL}=${id}`, network: plan.network?.name });
    try {
      const container = await startContainer(plan, { docker, id, context });
      const server = new ContainerServer(plan, docker, container, guard, context);
      await server.#comesUp(context.signal);
      return server;
    } catch (error) {
      await removeByLabel(docker, id);
      await guard?.close(); // looks once more for one that the daemon was still creating
      throw error;
    }
  }

  get host(): string {
    // On a machine with IPv6 "localhost" may be another port of another container.
    const host = this.container.getHost();
    return host === "localhost" ? "127.0.0.1" : host;
  }

  get port(): number {
    return this.container.getMappedPort(this.plan.port);
  }

  async pause(): Promise<void> {
    const deadline = Deadline.after(PAUSE_TIMEOUT_MS, systemClock);
    while (!(await this.#state()).Paused) {
      try {
        await this.#handle.pause();
      } catch (error) {
        // The kernel gives up freezing a busy process now and then.
        if ((error as { statusCode?: number }).statusCode !== 500 || deadline.passed) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  async resume(): Promise<void> {
    if ((await this.#state()).Paused) await this.#handle.unpause();
  }

  async kill(): Promise<void> {
    await this.resume(); // a paused container cannot be killed
    if ((await this.#state()).Running) await this.#handle.kill();
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.container.restart();
    await this.#comesUp();
  }

  async logTail(): Promise<string> {
    const log = await this.#handle.logs({ stdout: true, stderr: true, tail: 12, follow: false });
    return tailOf(textOfFrames(log));
  }

  async stop(): Promise<void> {
    await this.#handle.remove({ force: true, v: true }).catch((error: { statusCode?: number }) => {
      if (error.statusCode !== 404) throw error; // stopped before
    });
    await this.guard?.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  get #handle() {
    return this.docker.client.container.getById(this.container.getId());
  }

  async #state() {
    return (await this.#handle.inspect()).State;
  }

  async #comesUp(signal?: AbortSignal): Promise<void> {
    const deadline = Deadline.after(this.context.startTimeoutMs, systemClock);
    while (!(await this.plan.answers({ host: this.host, port: this.port }))) {
      signal?.throwIfAborted();
      if (deadline.passed) {
        throw new ServerStartError(
          `${this.plan.name} (${this.plan.image}) did not answer within ${this.context.startTimeoutMs} ms; ` +
            `the end of its log:\n${await this.logTail()}`,
        );
      }
      await sleep(POLL_MS);
    }
  }
}

async function startContainer(
  plan: ContainerPlan,
  options: { docker: Docker; id: string; context: StartContext },
): Promise<StartedTestContainer> {
  const { docker, id, context } = options;
  const container = new docker.testcontainers.GenericContainer(plan.image)
    .withExposedPorts(plan.port)
    .withEnvironment(plan.environment)
    .withLabels({ [LABEL]: id })
    .withStartupTimeout(context.startTimeoutMs);
  if (plan.command) container.withCommand(plan.command);
  if (plan.network) {
    container.withNetworkMode(plan.network.name).withNetworkAliases(plan.network.alias);
  }
  if (plan.seed) {
    container.withCopyDirectoriesToContainer([{ source: plan.seed.from, target: plan.seed.to }]);
  }
  const deadline = Deadline.after(context.startTimeoutMs * 2, systemClock);
  const starting = container.start();
  try {
    const started = await settleWithin(starting, deadline, context.signal);
    if (started !== TIMED_OUT) return started;
    throw new ServerStartError(`Docker does not start ${plan.image}`);
  } catch (error) {
    starting.then(
      (late) => late.stop(),
      () => {}, // it never came up; the error below is the one that is told
    );
    context.signal?.throwIfAborted();
    if (error instanceof ServerStartError) throw error;
    // Such as an image that testcontainers itself needs and cannot pull.
    const why = error instanceof Error ? error.message : String(error);
    throw new ServerStartError(`Docker does not start ${plan.image} (${why})`, { cause: error });
  }
}

async function removeByLabel({ client }: Docker, id: string): Promise<void> {
  const found = await client.container.fetchByLabel(LABEL, id);
  await found?.remove({ force: true, v: true });
}

/** Docker's log is a row of frames: eight bytes, of which the last four are the length, and the text. */
function textOfFrames(log: Buffer): string {
  let text = "";
  for (let at = 0; at + 8 <= log.length; ) {
    const end = at + 8 + log.readUInt32BE(at + 4);
    text += log.toString("utf8", at + 8, end);
    at = end;
  }
  return text;
}
