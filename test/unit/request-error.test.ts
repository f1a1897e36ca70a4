import { describe, expect, it } from "vitest";
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
  ZooKeeperUnsupportedError,
} from "../../lib/errors.js";
import { NativeClient } from "../../lib/zookeeper/native-client.js";
import { isServerAnswer, requestError } from "../../lib/zookeeper/request-error.js";

describe("an error of the ZooKeeper client", () => {
  it.each([
    [-4, ConnectionLossError, false],
    [-7, ConnectionLossError, false],
    [-118, ConnectionLossError, false],
    [-112, SessionLostError, false],
    [-116, SessionClosedError, false],
    [-9, SessionClosedError, false],
    [-101, NoNodeError, true],
    [-110, NodeExistsError, true],
    [-111, NotEmptyError, true],
    [-102, ZooKeeperDeniedError, true],
    [-115, ZooKeeperDeniedError, true],
    [-124, ZooKeeperDeniedError, true],
    [-103, BadVersionError, true],
    [-6, ZooKeeperUnsupportedError, true],
    [-8, ZooKeeperFaultError, false],
    [-999, ZooKeeperFaultError, false],
  ])("with code %d is a %o, known not to have happened: %s", (code, Class, definite) => {
    const error = requestError("create", "/a", code, "text");
    expect(error).toBeInstanceOf(Class);
    expect(error).toMatchObject({ zookeeperCode: code, operation: "create", path: "/a", definite });
    expect(error.name).toBe(Class.name);
  });

  it("confirms the session only when the code comes from a server that has it", () => {
    expect([0, -101, -102, -110].every(isServerAnswer)).toBe(true);
    expect([-4, -7, -9, -112, -115, -116, -118, -124].some(isServerAnswer)).toBe(false);
  });

  it("is typed also when the call itself returns it instead of its callback", async () => {
    const client = await NativeClient.load({
      connected: () => {},
      connecting: () => {},
      refused: () => {},
      closed: () => {},
      watch: () => {},
    });
    // never started: the native call answers ZINVALIDSTATE at once and its callback is not called
    await expect(client.read("/a", false)).rejects.toBeInstanceOf(SessionClosedError);
    await expect(client.create("/a", "", "persistent")).rejects.toMatchObject({
      zookeeperCode: -9,
    });
  });
});
