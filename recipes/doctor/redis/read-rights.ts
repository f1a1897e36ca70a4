/**
 * Asks what our user may do, without doing it.
 */
import { SinkDeniedError } from "../../../lib/errors.js";
import { fenceKeyOf, floorKeyOf, stageKeyOf } from "../../../lib/redis/fence-key.js";
import { type Seen, Unseen } from "../finding.js";
import { seen } from "../seen.js";
import { type RedisReader, textOf, textsOf } from "./redis-reader.js";
import { type KeyRole, NEEDED, type NeededCommand, type RightsFacts } from "./rights.js";

/** The result key for which it is asked; see `RightsFacts`. */
export type RightsQuestion = Pick<RightsFacts, "key" | "keyIsTheirs">;

/**
 * Asks the server what we may do, in a script that does nothing else: that needs no more rights than our scripts, and
 * tells of patterns of keys too. Servers before 7.0 cannot be asked so. Each argument is a command in JSON.
 */
const ASK_RIGHTS = `
if not redis.acl_check_cmd then return false end
local denied = {}
for index, command in ipairs(ARGV) do
  if not redis.acl_check_cmd(unpack(cjson.decode(command))) then denied[#denied + 1] = tostring(index) end
end
return denied`;

export async function readRights(
  reader: RedisReader,
  question: RightsQuestion,
): Promise<Seen<RightsFacts>> {
  const user = await seen(reader.read("ACL", "WHOAMI").then(textOf));
  const commands = NEEDED.map((needed) => JSON.stringify(wordsOf(needed, question.key)));
  try {
    const reply = await reader.read("EVAL", ASK_RIGHTS, "0", ...commands);
    if (reply !== null) {
      const denied = textsOf(reply).flatMap((index) => NEEDED[Number(index) - 1] ?? []);
      return { user, ...question, denied };
    }
  } catch (error) {
    if (!(error instanceof SinkDeniedError)) return seen(Promise.reject(error));
    return { user, ...question, denied: [{ command: "EVAL" }] };
  }
  if (user instanceof Unseen) return user;
  const record = await seen(reader.read("ACL", "GETUSER", user));
  if (record instanceof Unseen) return record;
  if (mayDoAll(record)) return { user, ...question, denied: [] };
  return new Unseen(`user ${user} is limited, and Redis before 7.0 does not say by what`);
}

/** Names and values in turn: the user's commands are all, and its keys too. */
function mayDoAll(record: unknown): boolean {
  const fields = Array.isArray(record) ? record : [];
  const named = (name: string): unknown =>
    fields[fields.findIndex((field, at) => at % 2 === 0 && textOf(field) === name) + 1];
  const keys = named("keys");
  const allKeys = textsOf(keys).includes("*") || textOf(keys) === "~*";
  return textOf(named("commands")) === "+@all" && allKeys;
}

/** A command as it is sent, as far as its rights go: with its keys. */
function wordsOf({ command, on }: NeededCommand, key: string): string[] {
  const keys: Record<KeyRole, string> = {
    ...{ result: key, fence: fenceKeyOf(key), floor: floorKeyOf(key), stage: stageKeyOf(key, "0") },
  };
  if (on === undefined) return [command, "0", "0"]; // a script without keys
  return [command, keys[on], ...(command === "RENAME" ? [keys.result] : [])];
}
