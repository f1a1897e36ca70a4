/**
 * Goal: a wait looks when it is told to, misses nothing between a watch and the next, and ends in one of its ways.
 * Method: a store that is one answer, with a watch that the test rings and cuts by hand.
 */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { Deadline } from "../../lib/deadline.js";
import { SinkDeniedError, SinkUnreachableError, TokenError } from "../../lib/errors.js";
import { OpenWaits } from "../../lib/redis/open-waits.js";
import { newerThanOf, waitForResult } from "../../lib/redis/wait-for-result.js";
import type { Watcher, Watching } from "../../lib/redis/watcher.js";
import type { ReadAnswer, WaitAnswer } from "../../lib/sink.js";
import { makeToken } from "../../lib/token.js";
import { Random } from "../../recipes/testing/random.js";
import { Scheduler } from "../../recipes/testing/scheduler.js";
import { SimulatedProcess } from "../../recipes/testing/simulated-process.js";
import { simulatedSink } from "../../recipes/testing/simulated-sink.js";
import { SimulatedStore } from "../../recipes/testing/simulated-store.js";
import { HandClock } from "../support/hand-clock.js";

const token = (sequence: number) => makeToken({ era: 0, generation: 7n, sequence });
const NOTHING: ReadAnswer = { key: "k", value: undefined, fence: undefined, matches: undefined };

/** A read of a key at which a token has committed, and perhaps a later one has begun. */
function committed(sequence: number, more: Partial<ReadAnswer> = {}): ReadAnswer {
  const tokenText = token(sequence).text;
  const result = { tokenText, revision: 1, ageMs: 0, digest: "d", committedAtMs: 1, holder: "h" };
  const counts = { staleCount: 0, observedCount: 0, lastStale: undefined };
  const fence = { tokenText, job: "job", state: "committed" as const, committed: result };
  const value = Buffer.from(`${sequence}`);
  return { key: "k", value, matches: true, fence: { ...fence, ...counts }, ...more };
}

let clock: HandClock;
let stored: ReadAnswer | Error;
let reads: number;
let watchers: Set<Watcher>;
let watching: () => Watching | undefined;
let afterRead: () => void;

beforeEach(() => {
  clock = new HandClock();
  stored = NOTHING;
  reads = 0;
  watchers = new Set();
  watching = () => undefined;
  afterRead = () => {};
});

const ring = () => {
  for (const watcher of watchers) watcher.changed();
};
const cut = () => {
  for (const watcher of watchers) watcher.lost();
};

function wait(options: { newerThan?: number; timeoutMs?: number; signal?: AbortSignal } = {}) {
  const { newerThan, timeoutMs = Number.POSITIVE_INFINITY, signal } = options;
  return waitForResult(
    {
      newerThan: newerThan === undefined ? undefined : token(newerThan),
      async read() {
        reads += 1;
        const answer = stored;
        afterRead();
        if (answer instanceof Error) throw answer;
        return answer;
      },
      async watch(watcher) {
        const instead = watching();
        if (instead !== undefined) return instead;
        watchers.add(watcher);
        return { kind: "watching", stop: () => watchers.delete(watcher) };
      },
    },
    { deadline: Deadline.after(timeoutMs, clock), signal },
  );
}

/** A wait that has begun to watch and has read what is there. */
async function begun(options: Parameters<typeof wait>[0] = {}) {
  const ends: WaitAnswer[] = [];
  const ended = wait(options);
  ended.then(
    (answer) => ends.push(answer),
    () => {}, // the test looks at the promise itself
  );
  await clock.pass(0);
  return { ended, ends };
}

describe("a wait for a result", () => {
  it("ends with a result that is there, and watches nothing", async () => {
    stored = committed(1);
    expect(await wait()).toEqual({ outcome: "found", ...committed(1) });
    expect([reads, watchers.size]).toEqual([1, 0]);
  });

  it("reads before and after it begins to watch, and then only when it is told to", async () => {
    const { ended } = await begun();
    await clock.pass(1_000_000);
    expect(reads).toBe(2);
    stored = committed(1);
    await clock.pass(1_000_000);
    expect(reads).toBe(2);
    ring();
    expect(await ended).toMatchObject({ outcome: "found", value: Buffer.from("1") });
    expect([reads, watchers.size, clock.timers]).toEqual([3, 0, 0]);
  });

  it.each<[string, ReadAnswer]>([
    ["a fence without a result", { ...committed(2), value: undefined, matches: undefined }],
    ["a result of the same token", committed(1)],
    ["a result of an older token", committed(0)],
    ["a value that was written past the fence", committed(2, { matches: false })],
    ["a value without a fence", { ...NOTHING, value: Buffer.from("v") }],
  ])("goes on at %s", async (_name, there) => {
    const { ended, ends } = await begun({ newerThan: 1 });
    stored = there;
    ring();
    await clock.pass(0);
    expect([ends.length, reads]).toEqual([0, 3]);
    stored = committed(2);
    ring();
    expect(await ended).toMatchObject({ outcome: "found", matches: true });
  });

  it("sees what was committed while it began to watch", async () => {
    watching = () => {
      stored = committed(1);
      return undefined;
    };
    expect(await wait()).toMatchObject({ outcome: "found" });
    expect(reads).toBe(2);
  });

  it("sees what was committed while it read, and looks once for many changes", async () => {
    const { ended } = await begun();
    afterRead = () => {
      afterRead = () => {};
      stored = committed(1);
      for (let change = 0; change < 10; change++) ring();
    };
    ring();
    expect(await ended).toMatchObject({ outcome: "found" });
    expect(reads).toBe(4);
  });

  it("sees what was committed while nothing was watched, after a watch that was lost", async () => {
    const { ended } = await begun();
    cut();
    watchers.clear();
    stored = committed(1);
    await clock.pass(20);
    expect(await ended).toMatchObject({ outcome: "found" });
    expect(clock.timers).toBe(0);
  });

  it("watches again after each watch that was lost", async () => {
    const { ended } = await begun();
    for (let cuts = 0; cuts < 3; cuts++) {
      cut();
      await clock.pass(20);
      expect(watchers.size).toBe(1);
    }
    stored = committed(1);
    ring();
    expect(await ended).toMatchObject({ outcome: "found" });
  });

  it("ends with a timeout, and with what was there", async () => {
    stored = committed(1);
    const { ended } = await begun({ newerThan: 1, timeoutMs: 500 });
    await clock.pass(500);
    expect(await ended).toEqual({ outcome: "timeout", ...committed(1) });
    expect([watchers.size, clock.timers]).toEqual([0, 0]);
  });

  it("ends with a timeout where a change came at the last moment, and could not be looked at", async () => {
    const { ended } = await begun({ timeoutMs: 500 });
    stored = new SinkUnreachableError("not in time");
    afterRead = () => clock.move(500);
    ring();
    expect(await ended).toEqual({ outcome: "timeout", ...NOTHING });
  });

  it("ends with an error where the connection was lost, and nobody knows what is there", async () => {
    const { ended } = await begun({ timeoutMs: 500 });
    const fault = new SinkUnreachableError("not in time");
    stored = fault;
    cut();
    await clock.pass(500);
    await expect(ended).rejects.toBe(fault);
    expect(watchers.size).toBe(0);
  });

  it("ends at once where it may not watch, and does not look again and again instead", async () => {
    const error = new SinkDeniedError("no");
    watching = () => ({ kind: "refused", error, passing: false });
    await expect(wait()).rejects.toBe(error);
    expect(reads).toBe(1);
  });

  it("looks again, ever more slowly, while a server cannot be watched for now", async () => {
    watching = () => ({ kind: "unsent", cause: new Error("the slot moves") });
    const { ended } = await begun({ timeoutMs: 60_000 });
    for (let pauses = 0; pauses < 10; pauses++) await clock.pass(500);
    expect(reads).toBeGreaterThan(10);
    expect(reads).toBeLessThan(20);
    watching = () => undefined;
    await clock.pass(500);
    stored = committed(1);
    ring();
    expect(await ended).toMatchObject({ outcome: "found" });
  });

  it("ends with the reason of its signal, and leaves nothing behind", async () => {
    const { signal, ...stop } = abortable();
    const { ended } = await begun({ signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    const reason = new Error("changed my mind");
    stop.abort(reason);
    await expect(ended).rejects.toBe(reason);
    expect([watchers.size, clock.timers]).toEqual([0, 0]);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason: unknown) => controller.abort(reason) };
}

describe("the token to be newer than", () => {
  it("is canonical text, or there is none", () => {
    expect(newerThanOf(undefined)).toBeUndefined();
    expect(newerThanOf(token(3).text)).toEqual(token(3));
    for (const text of ["", "3", 3 as unknown as string]) {
      expect(() => newerThanOf(text)).toThrow(TokenError);
    }
  });
});

describe("the open waits of a sink", () => {
  const forever = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });

  it("end when it is closed, and none begins later", async () => {
    const waits = new OpenWaits();
    const { signal } = abortable();
    const open = [waits.run(signal, forever), waits.run(undefined, forever)];
    waits.close();
    for (const each of [...open, waits.run(undefined, forever)]) {
      await expect(each).rejects.toThrow("the sink has been closed");
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("follow the caller's signal, also one that has aborted already", async () => {
    const waits = new OpenWaits();
    const { signal, abort } = abortable();
    const open = waits.run(signal, forever);
    const reason = new Error("enough");
    abort(reason);
    await expect(open).rejects.toBe(reason);
    await expect(waits.run(signal, forever)).rejects.toBe(reason);
  });
});

describe("a wait on a simulated sink", () => {
  it("ends with the result, whatever messages are lost and whenever the server is down", async () => {
    for (let seed = 1; seed <= 100; seed++) {
      const random = new Random(seed);
      const scheduler = new Scheduler(random);
      const weather = { loss: 0.2, slowMs: 0, isUp: true, scriptsLife: 1 };
      const store = new SimulatedStore();
      const sinkOf = (name: string) =>
        simulatedSink({ process: new SimulatedProcess(name, scheduler), random, store, weather });
      const [reader, writer] = [sinkOf("reader"), sinkOf("writer")];
      let found: WaitAnswer | undefined;
      void reader.waitFor("k", { newerThan: token(2).text }).then((answer) => {
        found = answer;
      });
      const commits = [1, 2, 3].map((sequence) => [random.whole(0, 2_000), sequence] as const);
      for (const [atMs, sequence] of commits) {
        const request = { key: "k", job: "job", token: token(sequence), value: `${sequence}` };
        const commit = async () => {
          // the message was lost each time: again, until it is known to be there
          while (!(await writer.commitResult(request).catch(() => undefined))); // as said
        };
        scheduler.after(atMs, () => void commit());
      }
      scheduler.after(random.whole(0, 2_000), () => {
        weather.isUp = false;
        scheduler.after(random.whole(1, 1_000), () => {
          weather.isUp = true;
          weather.scriptsLife += 1;
        });
      });
      expect(await scheduler.runUntil(() => found !== undefined, 60_000), `seed ${seed}`).toBe(
        true,
      );
      expect(found).toMatchObject({ outcome: "found", value: Buffer.from("3") });
    }
  });
});
