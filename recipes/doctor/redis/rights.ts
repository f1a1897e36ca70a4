/**
 * Judges whether the user may run what the scripts run, and finds that out of the scripts themselves. Pure.
 */
import { Check, type Finding, type Seen, Unseen } from "../finding.js";

const CHECK = new Check(
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

/** Without them a connection has no name, and does not notice by itself that another server has taken over. */
const USEFUL = ["client|setname", "info"];

/** What a worker's user may run, in the words of `ACL SETUSER`: {@link NEEDED}, and no more than is useful. */
export const RIGHTS = [
  ...new Set([...NEEDED.map(({ command }) => command.toLowerCase()), ...USEFUL]),
]
  .map((command) => `+${command}`)
  .join(" ");

const KEYS = "~<your keys> ~fence:* ~fence-floor:* ~fence-stage:*";

const PLACES: Record<KeyRole, string> = {
  result: "",
  fence: " on its fence",
  floor: " on its floor",
  stage: " on its stage",
};

export function judgeRights(rights: Seen<RightsFacts>): Finding {
  const fix = `ACL SETUSER <user> ${RIGHTS} ${KEYS}`;
  if (rights instanceof Unseen) return CHECK.unseen(rights, fix);
  const { denied, key, keyIsTheirs } = rights;
  const who = rights.user instanceof Unseen ? "the user" : `user ${JSON.stringify(rights.user)}`;
  const where = `result key ${JSON.stringify(key)}`;
  if (denied.length === 0) return CHECK.well(`${who} may run all that the scripts need`);
  const words = denied.map(({ command, on }) => command + (on === undefined ? "" : PLACES[on]));
  const found = `${who} may not run ${words.join(", ")} (for the ${where})`;
  const commands = [...new Set(denied.map(({ command }) => `+${command.toLowerCase()}`))].join(" ");
  if (keyIsTheirs) {
    return CHECK.broken(found, `ACL SETUSER <user> ${commands} ${KEYS}`);
  }
  return CHECK.warning(found, `ask again with a result key of yours: --key; or ${fix}`);
}
