/** What error answers of Redis mean, in the wording of 6.2 (wrapped by the script), of 7.0 and of 7.2. */
import { expect, it } from "vitest";
import {
  SinkDeniedError,
  SinkFaultError,
  SinkOutOfMemoryError,
  SinkReadOnlyError,
} from "../../lib/errors.js";
import { errorFromServer, isPassing } from "../../lib/redis/server-error.js";

const in62 = (text: string) =>
  `ERR Error running script (call to f_0123456789abcdef): @user_script:118: ${text} `;

it.each([
  ["NOAUTH Authentication required.", SinkDeniedError],
  ["WRONGPASS invalid username-password pair or user is disabled.", SinkDeniedError],
  ["NOPERM this user has no permissions to run the 'evalsha' command", SinkDeniedError],
  ["ERR The user executing the script can't run this command or subcommand", SinkDeniedError],
  [
    "ERR ACL failure in script: User limited has no permissions to run the 'hmget' command",
    SinkDeniedError,
  ],
  [
    in62("@user_script: 118: The user executing the script can't run this command or subcommand"),
    SinkDeniedError,
  ],
  ["OOM command not allowed when used memory > 'maxmemory'.", SinkOutOfMemoryError],
  [in62("-OOM command not allowed when used memory > 'maxmemory'."), SinkOutOfMemoryError],
  ["READONLY You can't write against a read only replica.", SinkReadOnlyError],
  [in62("-READONLY You can't write against a read only replica."), SinkReadOnlyError],
  ["MISCONF Redis is configured to save RDB snapshots", SinkReadOnlyError],
  ["NOREPLICAS Not enough good replicas to write.", SinkReadOnlyError],
  ["MASTERDOWN Link with MASTER is down", SinkReadOnlyError],
  ["ERR unknown command 'EVALSHA'", SinkFaultError],
  ["MOVED 3999 127.0.0.1:6381", SinkFaultError],
  ["", SinkFaultError],
])("%j is told as the error it is", (text, errorClass) => {
  const cause = new Error(text);
  const error = errorFromServer(cause);
  expect(error).toBeInstanceOf(errorClass);
  expect(error.cause).toBe(cause);
});

it.each([
  ["LOADING Redis is loading the dataset in memory", true],
  ["BUSY Redis is busy running a script.", true],
  ["ERR max number of clients reached", true],
  ["READONLY You can't write against a read only replica.", false],
  ["BUSYGROUP Consumer Group name already exists", false],
])("whether asking again helps is known for %j", (text, passing) => {
  expect(isPassing(text)).toBe(passing);
});
