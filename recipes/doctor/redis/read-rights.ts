/**
 * Asks what our user may do, without doing it.
 */
import { SinkDeniedError } from "../../../lib/errors.js";
import { fenceKeyOf } from "../../../lib/redis/fence-key.js";
import { SCRIPT_NAMES, scriptText } from "../../../lib/redis/script-files.js";
import { type Seen, Unseen } from "../finding.js";
import { seen } from "../seen.js";
import { type RedisReader, textOf, textsOf } from "./redis-reader.js";
import { commandsIn, type NeededCommand, type RightsFacts } from "./rights.js";

/** The result key for which it is asked; see `RightsFacts`. */
export type RightsQuestion = Pick<RightsFacts, "key" | "keyIsTheirs">;

/**
 * Asks the server what we may do, in a script that does nothing else: that needs no more rights than our scripts, and
 * tells of patterns of keys too. Servers before 7.0 cannot be asked so.
 */
const ASK_RIGHTS = `
if not redis.acl_check_cmd then return false end
local denied = {}
for i = 1, #ARGV, 2 do
  if not redis.acl_check_cmd(ARGV[i], KEYS[tonumber(ARGV[i + 1])] or '0', '0', '0') then
    denied[#denied + 1] = ARGV[i]
    denied[#denied + 1] = ARGV[i + 1]
  end
end
return denied`;

export async function readRights(
  reader: RedisReader,
  question: RightsQuestion,
): Promise<Seen<RightsFacts>> {
  const user = await seen(reader.read("ACL", "WHOAMI").then(textOf));
  const needed = commandsIn(SCRIPT_NAMES.map(scriptText));
  const words = needed.flatMap(({ command, key }) => [command, String(key)]);
  const keys = [question.key, fenceKeyOf(question.key)];
  try {
    const reply = await reader.read("EVAL", ASK_RIGHTS, "2", ...keys, ...words);
    if (reply !== null) return { user, ...question, denied: pairsOf(textsOf(reply)) };
  } catch (error) {
    if (!(error instanceof SinkDeniedError)) return seen(Promise.reject(error));
    return { user, ...question, denied: [{ command: "EVAL", key: 1 }] }; // or these keys
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

function pairsOf(words: readonly string[]): NeededCommand[] {
  const pairs: NeededCommand[] = [];
  for (let at = 0; at + 1 < words.length; at += 2) {
    pairs.push({ command: words[at] ?? "", key: Number(words[at + 1]) as 0 | 1 | 2 });
  }
  return pairs;
}
