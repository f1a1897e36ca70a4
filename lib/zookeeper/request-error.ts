/**
 * Turns the result codes of the ZooKeeper client into typed errors.
 * Pure: the codes are those of ZooKeeper's C client, the only place where they are named.
 */
import {
  BadVersionError,
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  SessionClosedError,
  SessionLostError,
  ZooKeeperDeniedError,
  ZooKeeperFaultError,
  type ZooKeeperRequestError,
  ZooKeeperUnsupportedError,
} from "../errors.js";

/** Result codes of the C client (zookeeper.h, `enum ZOO_ERRORS`). */
export const ZK = {
  ok: 0,
  connectionLoss: -4,
  unimplemented: -6,
  operationTimeout: -7,
  invalidState: -9,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  authFailed: -115,
  closing: -116,
  sessionMoved: -118,
  authRequired: -124,
} as const;

/** Codes below this come from the server, so the server has seen the request. */
const FIRST_SERVER_CODE = -100;

/** Codes of the client's own, and the one of a server that has lost our session to another server. */
const NO_CONFIRMATION = new Set<number>([
  ZK.closing,
  ZK.sessionExpired,
  ZK.authFailed,
  ZK.sessionMoved,
  ZK.authRequired,
]);

/** True when a result code proves that the server took part in the exchange, and knows our session. */
export function isServerAnswer(code: number): boolean {
  return code === ZK.ok || (code <= FIRST_SERVER_CODE && !NO_CONFIRMATION.has(code));
}

const DENIED = {
  [ZK.noAuth]: (what: string) =>
    `ZooKeeper does not allow ${what}: check the access control list (getAcl) of that path, and that the user and ` +
    "password are right (auth, ZOOKEEPER_AUTH)",
  [ZK.authFailed]: (what: string) =>
    `ZooKeeper did not accept our user and password, so ${what} was not done: check them (auth, ZOOKEEPER_AUTH), and ` +
    "that the server offers digest authentication",
  [ZK.authRequired]: (what: string) =>
    `ZooKeeper does not take ${what} from who has not authenticated: give a user and password (auth, ZOOKEEPER_AUTH)`,
};

/**
 * The error for a failed request.
 *
 * @param code the result code, negative
 * @param text what the client says about it, in English
 */
export function requestError(
  operation: string,
  path: string,
  code: number,
  text: string,
): ZooKeeperRequestError {
  const what = `${operation} ${path}`;
  switch (code) {
    case ZK.connectionLoss:
    case ZK.operationTimeout:
    case ZK.sessionMoved:
      return new ConnectionLossError(
        `the connection to ZooKeeper broke during ${what}; it may have taken effect`,
        operation,
        path,
        code,
      );
    case ZK.sessionExpired:
      return new SessionLostError(
        `the ZooKeeper session expired before ${what} was answered`,
        operation,
        path,
        code,
      );
    case ZK.closing:
    case ZK.invalidState:
      return new SessionClosedError(
        `the ZooKeeper session was closed before ${what} was answered`,
        operation,
        path,
        code,
      );
    case ZK.noNode:
      return new NoNodeError(`no such znode: ${what}`, operation, path, code);
    case ZK.nodeExists:
      return new NodeExistsError(`the znode exists already: ${what}`, operation, path, code);
    case ZK.notEmpty:
      return new NotEmptyError(`the znode has children: ${what}`, operation, path, code);
    case ZK.badVersion:
      return new BadVersionError(`the version is another one: ${what}`, operation, path, code);
    case ZK.noAuth:
    case ZK.authFailed:
    case ZK.authRequired:
      return new ZooKeeperDeniedError(DENIED[code](what), operation, path, code);
    case ZK.unimplemented:
      return new ZooKeeperUnsupportedError(
        `this ZooKeeper server is too old for ${what}`,
        operation,
        path,
        code,
      );
    default:
      return new ZooKeeperFaultError(
        `ZooKeeper answered ${code} (${text}) to ${what}`,
        operation,
        path,
        code,
      );
  }
}
