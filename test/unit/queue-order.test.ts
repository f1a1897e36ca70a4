import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { positionOf, readQueue } from "../../lib/zookeeper/queue-order.js";
import { contenderPrefix, parseContenderName } from "../../lib/zookeeper/znode-name.js";

const uuid = (digit: string) =>
  `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`;
const hex32 = (digit: string) => digit.repeat(32);
const numbered = (sequence: number) =>
  `${sequence < 0 ? "-" : ""}${String(Math.abs(sequence)).padStart(10, "0")}`;
const ours = (digit: string, sequence: number) =>
  `${contenderPrefix(uuid(digit))}${numbered(sequence)}`;

describe("a contender's name", () => {
  it.each([
    ["curator", `_c_${uuid("a")}-lock-0000000000`, 0],
    ["curator", `_c_${uuid("a")}-lock-0000000042`, 42],
    ["curator", `_c_${uuid("a")}-lock-2147483645`, 2147483645],
    ["curator", `_c_${uuid("a")}-lock-2147483647`, 2147483647],
    ["curator", `_c_${uuid("a")}-lock--2147483648`, -2147483648],
    ["curator", `_c_${uuid("a")}-lock--0000000001`, -1],
    ["go-zookeeper", `_c_${hex32("b")}-lock-0000000007`, 7],
    ["kazoo", `${hex32("c")}__lock__0000000007`, 7],
    ["kazoo", `${hex32("c")}__lock__-2147483648`, -2147483648],
    ["zookeeper-recipe", `${uuid("d")}-lock-0000000007`, 7],
    ["zookeeper-java", "x-72057594037927936-0000000007", 7],
    ["zookeeper-java", "x--72057594037927936-0000000007", 7],
    ["zookeeper-c", "x-0100a1b2c3d4e5f6-0000000007", 7],
  ])("of the form %s is read: %s is %d", (form, name, sequence) => {
    expect(parseContenderName(name)).toEqual({ name, form, sequence });
  });

  it.each([
    "",
    "config",
    "0000000001",
    "lock-0000000001",
    `_c_${uuid("a")}-lock-`,
    `_c_${uuid("a")}-lock-1`,
    `_c_${uuid("a")}-lock-00000000001`,
    `_c_${uuid("a")}-lock-+000000001`,
    `_c_${uuid("a")}-lock-2147483648`,
    `_c_${uuid("a")}-lock---2147483648`,
    `_c_${uuid("a")}-latch-0000000001`,
    `_c_${uuid("a").toUpperCase()}-lock-0000000001`,
    ` _c_${uuid("a")}-lock-0000000001`,
    `_c_${uuid("a")}-lock-0000000001\n`,
    `_c_${uuid("a")}-lock-0000000001x`,
  ])("is not seen in %j", (name) => {
    expect(parseContenderName(name)).toBeUndefined();
  });
});

describe("the queue", () => {
  it("is ordered by sequence when the order of names is the opposite", () => {
    const children = [ours("a", 3), ours("b", 2), ours("c", 1), ours("f", 0)];
    expect(readQueue(children).contenders.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3]);
    expect(positionOf(readQueue(children), ours("f", 0)).kind).toBe("first");
    expect(positionOf(readQueue(children), ours("a", 3))).toMatchObject({
      kind: "behind",
      ahead: 3,
      predecessor: { name: ours("b", 2) },
    });
  });

  it("is ordered by sequence across the forms of several clients", () => {
    const children = [
      ours("a", 12),
      `${hex32("0")}__lock__0000000011`,
      "x-72057594037927936-0000000010",
      `_c_${hex32("9")}-lock-0000000009`,
    ];
    expect(readQueue(children).contenders.map(({ form }) => form)).toEqual([
      "go-zookeeper",
      "zookeeper-java",
      "kazoo",
      "curator",
    ]);
  });

  it("gives the claim to sequence 0 as to any other", () => {
    expect(positionOf(readQueue([ours("a", 0)]), ours("a", 0)).kind).toBe("first");
  });

  it("sets children aside that are nobody's contender", () => {
    const queue = readQueue(["config", ours("a", 1)]);
    expect(queue.foreign).toEqual(["config"]);
    expect(positionOf(queue, ours("a", 1)).kind).toBe("first");
  });

  it("has no place for a contender that is not in the listing", () => {
    expect(positionOf(readQueue([ours("a", 1)]), ours("b", 0)).kind).toBe("missing");
    expect(positionOf(readQueue([]), ours("b", 0)).kind).toBe("missing");
  });

  it("lets nobody be first who shares a sequence, as happens at the end of the counter", () => {
    const children = [ours("a", 2147483647), ours("b", 2147483647)];
    expect(positionOf(readQueue(children), ours("a", 2147483647)).kind).toBe("behind");
    expect(positionOf(readQueue(children), ours("b", 2147483647)).kind).toBe("behind");
  });

  it("has exactly one first, and everybody else behind the nearest lower sequence, in any order of listing", () => {
    const sequences = fc.uniqueArray(fc.integer({ min: 0, max: 2 ** 31 - 2 }), { minLength: 1 });
    fc.assert(
      fc.property(sequences, fc.infiniteStream(fc.integer()), (given, random) => {
        const children = given.map((n) => ours((n % 16).toString(16), n));
        children.sort(() => Number(random.next().value));
        const queue = readQueue(children);
        const sorted = [...given].sort((a, b) => a - b);
        sorted.forEach((sequence, index) => {
          const position = positionOf(queue, ours((sequence % 16).toString(16), sequence));
          if (index === 0) expect(position.kind).toBe("first");
          else {
            expect(position).toMatchObject({
              kind: "behind",
              ahead: index,
              predecessor: { sequence: sorted[index - 1] },
            });
          }
        });
      }),
    );
  });
});
