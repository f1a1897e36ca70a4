/**
 * Sends one request over a connection to a server: a plain command, or a script, with the value that is staged for it.
 */
import type { CommandRequest, ScriptRequest, ScriptValues } from "./attempt.js";
import type { Node } from "./client/route.js";

type ScriptCall = (keyCount: number, ...keysAndArguments: (string | Buffer)[]) => Promise<unknown>;

export async function sendRequest(
  node: Node,
  request: ScriptRequest | CommandRequest,
): Promise<unknown> {
  if ("command" in request) return node.callBuffer(request.command, request.values);
  const { script, keys, stage } = request;
  // Scripts are methods that the types of ioredis do not know; "Buffer" asks for binary replies.
  const commands = node as unknown as Record<string, ScriptCall>;
  const call = (values: ScriptValues) =>
    (commands[`${script}Buffer`] as ScriptCall).call(node, keys.length, ...keys, ...values);
  if (stage === undefined) {
    return call(Array.isArray(request.values) ? request.values : await request.values);
  }
  const staging = node.callBuffer("SET", [stage.key, stage.value, "PX", String(stage.ttlMs)]);
  const calling = Promise.resolve(request.values).then(call);
  const [staged, reply] = await Promise.allSettled([staging, calling]);
  if (reply.status === "fulfilled") {
    // Refused before it came to the value: the script's answer counts. Else say why the value is not there.
    const isUnstaged = String((reply.value as Buffer[])[0]) === "unstaged";
    if (!isUnstaged || staged.status === "fulfilled") return reply.value;
  }
  throw reply.status === "rejected" ? reply.reason : (staged as PromiseRejectedResult).reason;
}
