/**
 * `commit --key K`: fenced write of standard input, for scripts under `run`.
 */
import type { Command } from "commander";
import { OptionError, ResultTooLargeError } from "../../../lib/errors.js";
import type { CommitAnswer } from "../../../lib/sink.js";
import { type FencingToken, parseToken } from "../../../lib/token.js";
import type { ZooKeeper } from "../../../lib/zookeeper/zookeeper.js";
import { confirmToken } from "../../claim/confirm-token.js";
import { defaultHolder } from "../../claim/holder.js";
import {
  addCommonOptions,
  type CommonFlags,
  connectTimeoutMsOf,
  reportOf,
  sinkOf,
  zookeeperOf,
} from "../common-options.js";
import { parseBytes, parseDurationMs } from "../duration.js";
import { addObserveOption } from "../redis-options.js";
import { refusalOf, warnOfObserved } from "../refusal.js";

interface CommitFlags extends CommonFlags {
  key: string;
  token?: string;
  job?: string;
  ttl?: string;
  maxBytes: string;
}

export function addCommit(program: Command): void {
  const command = program
    .command("commit")
    .summary("write standard input behind the fence")
    .description(
      "Commits standard input as the result at a key. Token and job come from the environment of `run` " +
        "(FENCEKEEPER_TOKEN, FENCEKEEPER_JOB) or from --token and --job. Exit 0: committed, or it was committed " +
        "before under this token. Exit 73: stale, a newer claim has been there; nothing was overwritten.",
    )
    .requiredOption("--key <key>", "the result's key")
    .option("--token <token>", "fencing token in its canonical text")
    .option("--job <job>", "the job the key belongs to (default: the key)")
    .option("--ttl <duration>", "how long the result is kept (default: for ever)")
    .option("--max-bytes <size>", "larger results are refused", "16MiB");
  addObserveOption(addCommonOptions(command)).action(commit);
}

async function commit(flags: CommitFlags): Promise<void> {
  const report = reportOf(flags);
  const tokenText = flags.token ?? process.env.FENCEKEEPER_TOKEN;
  if (tokenText === undefined) {
    throw new OptionError("which token? Give --token, or call this under `fencekeeper run`");
  }
  const request = {
    key: flags.key,
    job: flags.job ?? process.env.FENCEKEEPER_JOB ?? flags.key,
    token: parseToken(tokenText),
    holder: defaultHolder(),
    ...(flags.ttl === undefined ? {} : { ttlMs: parseDurationMs(flags.ttl, "--ttl") }),
  };
  const bytesMax = parseBytes(flags.maxBytes, "--max-bytes");
  const zookeeper = flags.zookeeper ? zookeeperOf(flags, report) : undefined;
  const confirm = zookeeper && confirming(zookeeper, request, flags);
  const sink = sinkOf(flags);
  try {
    const value = await readInput(bytesMax);
    const answer = await sink.commitResult({ ...request, ...(confirm && { confirm }), value });
    if (report.json) await report.result(`${JSON.stringify(describe(answer, tokenText))}\n`);
    const refusal = refusalOf(answer, flags.key);
    if (refusal !== undefined) throw refusal;
    warnOfObserved(report, answer, flags.key);
    report.note(`${answer.outcome} at ${JSON.stringify(flags.key)}`, { outcome: answer.outcome });
  } finally {
    await Promise.all([sink.close(), zookeeper?.close()]);
  }
}

/** ZooKeeper is only asked where `compact` may have removed the key's fence. */
function confirming(
  zookeeper: ZooKeeper,
  { job, token }: { job: string; token: FencingToken },
  flags: CommitFlags,
) {
  const { root } = flags;
  const answerMs = connectTimeoutMsOf(flags);
  return (signal: AbortSignal | undefined) =>
    confirmToken({ zookeeper, job, token, root, answerMs, signal });
}

function describe(answer: CommitAnswer, token: string): Record<string, unknown> {
  return { ...answer, token };
}

async function readInput(bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new ResultTooLargeError(
        `the result is larger than ${bytesMax} bytes: raise --max-bytes, or commit a reference to it`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
