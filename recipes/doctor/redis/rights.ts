/**
 * Judges whether the user may run what the scripts run, and finds that out of the scripts themselves. Pure.
 */
import { Check, type Finding, type Seen, Unseen } from "../finding.js";

const RIGHTS = new Check(
  "redis",
  "rights",
  "a script that meets a command it may not run refuses the commit",
);

/** The keys of one result, as the scripts get them. */
export type KeyRole = "result" | "fence" | "floor" | "stage";

/** A command that is run, by the scripts or by the client, and the key it is run on, where there is one. */
export interface NeededCommand {
  command: string;
  on?: KeyRole | undefined;
}

export interface RightsFacts {
  user: Seen<string>;
  /** The result key for which it was asked. */
  key: string;
  /** Whether the user commits to this key, as far as we know; else it is one of our own choosing. */
  keyIsTheirs: boolean;
  /** What the user may not run; empty when all is allowed. */
  denied: readonly NeededCommand[];
}

const COMMANDS: readonly (readonly [on: KeyRole | undefined, commands: string])[] = [
  [undefined, "EVAL EVALSHA TIME"],
  ["result", "TYPE GET SET UNLINK PERSIST PEXPIRE"],
  ["fence", "TYPE HGETALL HSET HDEL HINCRBY PTTL PERSIST PEXPIRE"],
  ["floor", "GET"],
  ["stage", "SET TYPE RENAME UNLINK PERSIST PEXPIRE"],
];

/** All that a user needs who commits and reads results; `compact` needs more. */
export const NEEDED: readonly NeededCommand[] = COMMANDS.flatMap(([on, commands]) =>
  commands.split(" ").map((command) => ({ command, on })),
);

/** Rights that hold all of {@link NEEDED}. */
export const RIGHTS_LINE =
  "+@scripting +@read +@write +time ~<your keys> ~fence:* ~fence-floor:* ~fence-stage:*";

const KEYS_AT = RIGHTS_LINE.indexOf("~");

const PLACES: Record<KeyRole, string> = {
  result: "",
  fence: " on its fence",
  floor: " on its floor",
  stage: " on its stage",
};

export function judgeRights(rights: Seen<RightsFacts>): Finding {
  const fix = `ACL SETUSER <user> ${RIGHTS_LINE}`;
  if (rights instanceof Unseen) return RIGHTS.unseen(rights, fix);
  const { denied, key, keyIsTheirs } = rights;
  const who = rights.user instanceof Unseen ? "the user" : `user ${JSON.stringify(rights.user)}`;
  const where = `result key ${JSON.stringify(key)}`;
  if (denied.length === 0) return RIGHTS.well(`${who} may run all that the scripts need`);
  const words = denied.map(({ command, on }) => command + (on === undefined ? "" : PLACES[on]));
  const found = `${who} may not run ${words.join(", ")} (for the ${where})`;
  const commands = [...new Set(denied.map(({ command }) => `+${command.toLowerCase()}`))].join(" ");
  if (keyIsTheirs) {
    return RIGHTS.broken(found, `ACL SETUSER <user> ${commands} ${RIGHTS_LINE.slice(KEYS_AT)}`);
  }
  return RIGHTS.warning(found, `ask again with a result key of yours: --key; or ${fix}`);
}
