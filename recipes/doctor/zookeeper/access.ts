/**
 * Judges who may change what we keep in ZooKeeper. Pure.
 */
import { Check, counted, type Finding, named, type Seen, Unseen } from "../finding.js";
import { type AclEntry, RIGHTS } from "./wire.js";

const ACCESS = new Check(
  "zookeeper",
  "access",
  "who may delete a contender takes its claim away, and who may create one can block a job",
);

/** The access control list of one path. */
export interface AccessLook {
  path: string;
  entries: Seen<readonly AclEntry[]>;
}

export function judgeAccess(looks: Seen<readonly AccessLook[]>): Finding {
  const fix =
    "zkCli.sh setAcl -R <root> auth::cdrwa,world:anyone:r (after addauth digest user:password)";
  if (looks instanceof Unseen) return ACCESS.unseen(looks, `getAcl <root>; ${fix}`);
  if (looks.length === 0) return ACCESS.note("nothing is there yet: no claim was ever made here");
  const open = looks.filter(({ entries }) => !(entries instanceof Unseen) && isOpen(entries));
  if (open.length > 0) {
    const found = `everybody may change ${counted(open.length, "znode")}: ${named(open.map(({ path }) => path))}`;
    return ACCESS.warning(found, fix);
  }
  const hidden = looks.find(({ entries }) => entries instanceof Unseen);
  if (hidden?.entries instanceof Unseen) {
    return ACCESS.unseen(hidden.entries, `zkCli.sh getAcl ${hidden.path}`);
  }
  return ACCESS.well(`${counted(looks.length, "znode")} looked at, none open to everybody`);
}

/** Everybody: `world:anyone`, and an address range that holds all. */
function isOpen(entries: readonly AclEntry[]): boolean {
  const changing = RIGHTS.write | RIGHTS.create | RIGHTS.delete | RIGHTS.admin;
  return entries.some(
    ({ scheme, id, rights }) =>
      (rights & changing) !== 0 &&
      ((scheme === "world" && id === "anyone") || (scheme === "ip" && id.endsWith("/0"))),
  );
}
