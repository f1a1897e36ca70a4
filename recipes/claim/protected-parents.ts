/**
 * The claim path and what is above it, with an access control list that keeps strangers out.
 *
 * The npm client makes every znode open to everybody, and a list can only be set afterwards. What makes that moment
 * harmless:
 *
 * 1. From the top down, each znode is made *and* protected before the one below it is made, and all before our first
 *    contender. Once `<root>/claims` is protected, a stranger can make no claim path, and none of ours exists before
 *    it is protected; what is left is one round trip in the life of each znode.
 * 2. Only one of us is the first to set the list: the list's version is compared. Nobody of ours enters before, so
 *    whatever has come in until then is a stranger's, and the one who was first removes it; it cannot come back.
 * 3. A znode that we make says in its data that it is to be protected. If its maker dies, or does not learn what became
 *    of its create, the next of us that comes by finds it with a list that was never set, and goes on.
 *
 * A znode without that mark was there before us, and its list is never changed. It is only warned of where no list was
 * ever set. Which list a znode has is not read, because the npm package has no call for it that can be used (see
 * `Handle.setAcl`).
 */
import {
  BadVersionError,
  ConfigurationError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  ZooKeeperDeniedError,
} from "../../lib/errors.js";
import type { Acl } from "../../lib/zookeeper/access.js";
import { parentOf } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";

export interface ProtectedParents {
  session: Session;
  /** The claim path. */
  path: string;
  acl: Acl;
  /** Makes one znode. */
  make: (path: string, data: string) => Promise<void>;
  warn: (message: string) => void;
}

/** `bare`: made by one of us, and not protected yet. `open`: made by somebody else, and perhaps never protected. */
type Condition = "missing" | "bare" | "open" | "kept";

/** Data of a znode that is to be protected, in words for people who look. */
const MARK = "fencekeeper: protected by an access control list";

/** A list that was never set. */
const NEVER_SET = 0;

/**
 * Makes what is missing, and protects what is ours.
 *
 * @throws ZooKeeperDeniedError when a list is in the way, or somebody else's
 * @throws ConfigurationError when a stranger has made more in the meantime than can be removed here
 */
export async function readyProtected(parents: ProtectedParents): Promise<void> {
  for (;;) {
    try {
      await readyOnce(parents);
      return;
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error; // the server has removed an empty claim path meanwhile
    }
  }
}

async function readyOnce(parents: ProtectedParents): Promise<void> {
  const { path, warn } = parents;
  const all = [...ancestorsOf(path), path];
  const conditions = await Promise.all(all.map((each) => conditionOf(parents, each)));
  for (const [index, each] of all.entries()) {
    let condition = conditions[index];
    if (condition === "missing") condition = await makeOne(parents, each);
    if (condition === "bare") await protect(parents, each);
    if (condition === "open" && (each === path || each === parentOf(path))) {
      warn(
        `${each} was made without an access control list of ours, and strangers may have rights there: set one ` +
          "(setAcl), or delete it when it is empty, so that it is made afresh",
      );
    }
  }
}

/** From the top. */
function ancestorsOf(path: string): string[] {
  const parent = parentOf(path);
  return parent === "" ? [] : [...ancestorsOf(parent), parent];
}

async function conditionOf({ session, path }: ProtectedParents, each: string): Promise<Condition> {
  try {
    const { data, stat } = await session.read(each);
    if (stat.aclVersion !== NEVER_SET) return "kept";
    return data === MARK ? "bare" : "open";
  } catch (error) {
    if (error instanceof NoNodeError) return "missing";
    // Above what is ours there may be what we need not read.
    if (error instanceof ZooKeeperDeniedError && each !== path) return "kept";
    throw error;
  }
}

async function makeOne(parents: ProtectedParents, each: string): Promise<Condition> {
  try {
    await parents.make(each, MARK);
    return "bare";
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error;
    return conditionOf(parents, each); // somebody was faster
  }
}

async function protect({ session, acl, warn }: ProtectedParents, each: string): Promise<void> {
  const set = session.setAcl(each, acl, NEVER_SET);
  const read = session.read(each); // in one go: from the first moment after it
  read.catch(() => {}); // when both fail, the first error is the one that says what to do
  try {
    await set;
  } catch (error) {
    if (error instanceof BadVersionError) return; // another one of us was faster
    throw error;
  }
  if ((await read).stat.childVersion === 0) return;
  const { children } = await session.list(each);
  for (const child of children) {
    warn(`a stranger has made ${each}/${child} before ${each} was protected; it is removed`);
    await remove(session, `${each}/${child}`);
  }
}

async function remove(session: Session, path: string): Promise<void> {
  try {
    await session.delete(path);
  } catch (error) {
    if (error instanceof NoNodeError) return;
    if (!(error instanceof NotEmptyError)) throw error;
    throw new ConfigurationError(
      `a stranger has made ${path} before its parent was protected: find out who, and delete it with all below it`,
      { cause: error },
    );
  }
}
