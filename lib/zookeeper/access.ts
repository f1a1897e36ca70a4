/**
 * Who we are to ZooKeeper, and who may do what with the znodes that we make. Pure.
 */
import { OptionError } from "../errors.js";

/** A user and password; ZooKeeper knows them as `user:base64(sha1(user:password))`. */
export interface DigestAuth {
  scheme: "digest";
  user: string;
  password: string;
}

/** What a handle proves who it is with. It holds a secret: it goes to the client and nowhere else. */
export interface Credentials {
  scheme: "digest";
  /** `user:password` */
  secret: string;
}

/** One entry of an access control list. */
export interface AclEntry {
  /** Sum of {@link RIGHTS}. */
  rights: number;
  scheme: string;
  id: string;
}

export type Acl = readonly AclEntry[];

/** `readable`: everybody may see who holds and who waits. `private`: nobody but us may. */
export type Access = "readable" | "private";

/** Rights as the server counts them (zookeeper.h, `ZOO_PERM_…`). A znode is deleted by a right on its parent. */
export const RIGHTS = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** Those that have authenticated as we have; the server puts their ids in its place, by its own digest algorithm. */
const OURSELVES: AclEntry = { rights: RIGHTS.all, scheme: "auth", id: "" };

const EVERYBODY_READS: AclEntry = { rights: RIGHTS.read, scheme: "world", id: "anyone" };

export function aclFor(access: Access): Acl {
  return access === "private" ? [OURSELVES] : [OURSELVES, EVERYBODY_READS];
}

/** @throws OptionError when they cannot be used; the message holds no secret */
export function credentialsOf({ scheme, user, password }: DigestAuth): Credentials {
  if (scheme !== "digest") throw new OptionError('the scheme of auth must be "digest"');
  if (typeof user !== "string" || user === "" || user.includes(":")) {
    throw new OptionError("the user of auth must be a text that is not empty and has no colon");
  }
  if (typeof password !== "string" || password === "") {
    throw new OptionError("the password of auth must be a text that is not empty");
  }
  if (/\0/.test(user + password)) throw new OptionError("auth must not contain a zero character");
  return { scheme, secret: `${user}:${password}` };
}

/** @throws OptionError */
export function checkAccess(access: unknown): Access {
  if (access === "readable" || access === "private") return access;
  throw new OptionError(`acl must be "readable" or "private"; it is ${JSON.stringify(access)}`);
}
