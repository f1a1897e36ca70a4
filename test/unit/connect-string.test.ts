import { describe, expect, it } from "vitest";
import { OptionError } from "../../lib/errors.js";
import { formatConnectString, parseConnectString } from "../../lib/zookeeper/connect-string.js";

describe("a ZooKeeper address", () => {
  it.each([
    ["zk", "zk:2181"],
    ["zk:2182", "zk:2182"],
    ["a:1,b:2,c", "a:1,b:2,c:2181"],
    ["a:1, b:2", "a:1,b:2"],
    ["a:1/team", "a:1/team"],
    ["a:1,b:2/team/x", "a:1,b:2/team/x"],
    ["a:1/", "a:1"],
    ["[::1]:2181/x", "::1:2181/x"],
  ])("%j is read as %j", (text, formatted) => {
    expect(formatConnectString(parseConnectString(text))).toBe(formatted);
  });

  it.each([
    "",
    ",",
    "a:1,",
    ":2181",
    "a:0",
    "a:65536",
    "a:x",
    "a b:1",
    "a:1//x",
    "a:1/x/",
    "a:1/../x",
    "http://a:1",
  ])("%j is refused as an address", (text) => {
    expect(() => parseConnectString(text)).toThrow(OptionError);
  });
});
