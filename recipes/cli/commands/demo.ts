/**
 * `demo`: the whole story in a minute, with real servers and real processes.
 */
import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { OptionError } from "../../../lib/errors.js";
import { forwardSignals } from "../../command/forward-signals.js";
import { tellStory } from "../../demo/story.js";
import { startServers } from "../../servers/start-servers.js";
import { addCommonOptions, type CommonFlags, reportOf } from "../common-options.js";
import { EXIT, Exit } from "../exit.js";
import { Interrupted } from "../interrupted.js";
import { Timeline } from "../timeline.js";

interface DemoFlags extends CommonFlags {
  input?: string;
  unfenced?: true;
}

export function addDemo(program: Command): void {
  const command = program
    .command("demo")
    .summary("see a late write refused, with real servers")
    .description(
      "Starts a ZooKeeper and a Redis (or takes yours), lets three workers want one job, stops the first right " +
        "before its write until its session has expired, and continues it after another one has committed. " +
        "Its late write is refused. Exit 0 only if the story went as told.",
    )
    .option("--input <folder>", "folder whose text files are indexed (default: this project's own)")
    .option("--unfenced", "the same without the fence: the old result ends on top");
  addCommonOptions(command).action(demo);
}

async function demo(flags: DemoFlags): Promise<void> {
  const report = reportOf(flags);
  const input = await inputFolder(flags);
  if ((flags.zookeeper === undefined) !== (flags.redis === undefined)) {
    throw new OptionError("give both --zookeeper and --redis, or neither to have servers started");
  }
  const giveUp = new AbortController();
  const stopForwarding = forwardSignals((signal) => giveUp.abort(new Interrupted(signal)));
  const lines = flags.quiet ? () => {} : (line: string) => process.stdout.write(`${line}\n`);
  const timeline = new Timeline(report.json ? () => {} : lines, {
    coloured: process.stdout.isTTY === true && !("NO_COLOR" in process.env),
  });
  const emit = (details: object) => {
    if (report.json && !flags.quiet) lines(JSON.stringify(details));
  };
  try {
    await using servers = await startServers({
      given: { zookeeper: flags.zookeeper, redis: flags.redis },
      say: (line) => timeline.line("demo", line),
      signal: giveUp.signal,
    });
    timeline.line(
      "demo",
      `ZooKeeper at ${servers.zookeeper.connect}, Redis at ${servers.redis.url}`,
    );
    const end = await tellStory({
      zookeeper: servers.zookeeper.connect,
      redis: servers.redis.url,
      input,
      fenced: flags.unfenced !== true,
      signal: giveUp.signal,
      onStep: (who, event) => {
        timeline.step(who, event);
        emit({ who, ...event });
      },
    });
    const { worker, token, files, words } = end.result;
    timeline.line(
      "demo",
      `final result: written by ${worker} under token ${Number(token.slice(-10))}, ${words} words in ${files} files`,
    );
    timeline.verdict(end.asTold, end.verdict);
    if (report.json) await report.result(`${JSON.stringify(end)}\n`);
    if (!end.asTold) throw new Exit(EXIT.no, end.verdict, "NOT_AS_TOLD");
  } finally {
    stopForwarding();
  }
}

/** @throws OptionError when it is no folder */
async function inputFolder({ input }: DemoFlags): Promise<string> {
  if (input === undefined) return fileURLToPath(new URL("../../../..", import.meta.url));
  const found = await stat(input).catch(() => undefined); // the message below says what was wrong
  if (found?.isDirectory() !== true) {
    throw new OptionError(`--input takes a folder; ${JSON.stringify(input)} is none`);
  }
  return input;
}
