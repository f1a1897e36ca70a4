/**
 * Judges whether the user may run what the scripts run, and finds that out of the scripts themselves. Pure.
 */
import { Check, type Finding, type Seen, Unseen } from "../finding.js";

const RIGHTS = new Check(
  "redis",
  "rights",
  "a script that meets a command it may not run refuses the commit",
);

/** A command of the scripts, and the key it is run on: 1 is the result, 2 the fence, 0 none. */
export interface NeededCommand {
  command: string;
  key: 0 | 1 | 2;
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

/** What the clients send, with the scripts or their hashes. */
const OUTSIDE: readonly NeededCommand[] = [
  { command: "EVAL", key: 0 },
  { command: "EVALSHA", key: 0 },
];

/** The commands that scripts run, read out of their text. */
export function commandsIn(scripts: readonly string[]): NeededCommand[] {
  const calls = scripts.flatMap((text) => [
    ...text.matchAll(/redis\.p?call\(\s*'(\w+)'(?:\s*,\s*KEYS\[([12])\])?/g),
  ]);
  const needed = new Map<string, NeededCommand>();
  for (const [, command = "", key = "0"] of calls) {
    needed.set(`${command} ${key}`, { command, key: Number(key) as 0 | 1 | 2 });
  }
  return [...OUTSIDE, ...needed.values()];
}

export function judgeRights(rights: Seen<RightsFacts>): Finding {
  const fix = "ACL SETUSER <user> +@scripting +@read +@write ~<your keys> ~fence:*";
  if (rights instanceof Unseen) return RIGHTS.unseen(rights, fix);
  const { denied, key, keyIsTheirs } = rights;
  const who = rights.user instanceof Unseen ? "the user" : `user ${JSON.stringify(rights.user)}`;
  const where = `result key ${JSON.stringify(key)}`;
  if (denied.length === 0) return RIGHTS.well(`${who} may run all that the scripts need`);
  const words = denied.map((each) => each.command + ["", "", " on its fence"][each.key]);
  const found = `${who} may not run ${words.join(", ")} (for the ${where})`;
  const commands = [...new Set(denied.map(({ command }) => `+${command.toLowerCase()}`))].join(" ");
  if (keyIsTheirs) return RIGHTS.broken(found, `ACL SETUSER <user> ${commands} ~<key> ~fence:*`);
  return RIGHTS.warning(found, `ask again with a result key of yours: --key; or ${fix}`);
}
