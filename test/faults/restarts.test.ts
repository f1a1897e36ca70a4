/**
 * Goal: a server that is killed and started again under load, over and over, costs nobody more than time: every
 * contender is granted again, tokens rise, and neither the server nor this process keeps anything of it.
 * Method: 16 contenders over 4 sessions claim one hot job, and now and then a cold one, as fast as they can.
 * FENCEKEEPER_ROUNDS sets the number of kills: a few by default, 200 in the long run.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../lib/clock.js";
import { Deadline } from "../../lib/deadline.js";
import { compareTokens, type FencingToken } from "../../lib/token.js";
import { claimPath } from "../../lib/zookeeper/paths.js";
import type { Session } from "../../lib/zookeeper/session-port.js";
import { ZooKeeper } from "../../lib/zookeeper/zookeeper.js";
import { claim } from "../../recipes/claim.js";
import type { ZooKeeperServer } from "../../recipes/servers/server.js";
import { startZooKeeper } from "../../recipes/servers/start-servers.js";
import { CountedSessions } from "../support/counted-sessions.js";
import { fourLetterWord } from "../support/four-letter-word.js";
import { childrenOf } from "../support/raw-zookeeper.js";
import { SteadyAddress } from "../support/steady-address.js";

const ROUNDS = Number(process.env.FENCEKEEPER_ROUNDS || 4);
const CONTENDERS = 16;
const SESSIONS = 4;
const SESSION_MS = 4_000;
/** Far beyond a restart, so that whoever runs into it hangs. */
const BOUND_MS = 60_000;
const WAIT = { timeout: BOUND_MS, interval: 20 };
/** Sequence numbers that may be used up without a grant by each restart: they do not depend on the load. */
const ATTEMPTS_PER_RESTART = 2 * CONTENDERS;
/** Grants to each contender between two kills: one hits a server that is warm, another one that has just come up. */
const TURNS = [1, 20, 3, 10];
/** Of the wait for a condition itself, which has one timer for its turns and one for its end. */
const OWN_TIMERS = 2;

const HOT = "hot";
const COLD = ["cold-0", "cold-1", "cold-2"];

/** What is noted of one job, in constant space. */
interface Record {
  grants: number;
  last: FencingToken | undefined;
  /** Tokens that did not rise. */
  fallen: string[];
}

class Load {
  readonly records = new Map<string, Record>();
  /** How often each contender was granted the hot job. */
  readonly grants = new Array<number>(CONTENDERS).fill(0);
  readonly faults: unknown[] = [];
  readonly #contenders: Promise<void>[];
  #stopping = false;

  constructor(readonly sources: CountedSessions[]) {
    this.#contenders = this.grants.map((_none, index) => this.#contend(index));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#contenders);
  }

  recordOf(job: string): Record {
    const record = this.records.get(job) ?? { grants: 0, last: undefined, fallen: [] };
    this.records.set(job, record);
    return record;
  }

  /** Who stands in the queue of the hot job, and in which state the sessions are. */
  async describe(): Promise<string> {
    const sessions = await Promise.all(this.sources.map(sessionOf));
    const states = sessions.map(({ id, state }) => `${id} ${state}`);
    const queue = await childrenOf(sessions[0] as Session, claimPath(HOT));
    return `grants ${this.grants}; sessions ${states}; queue ${queue.sort()}`;
  }

  async #contend(index: number): Promise<void> {
    for (let turn = 0; !this.#stopping; turn += 1) {
      const cold = turn % 5 === 4 ? COLD[turn % COLD.length] : undefined;
      try {
        await this.#claimOnce(index, cold ?? HOT);
      } catch (error) {
        this.faults.push(error);
      }
    }
  }

  async #claimOnce(index: number, job: string): Promise<void> {
    const zookeeper = this.sources[index % SESSIONS] as CountedSessions;
    const answer = await claim({ zookeeper, job, waitMs: BOUND_MS, answerMs: BOUND_MS });
    if (answer.outcome !== "granted") throw new Error(`${job} is ${answer.outcome}`);
    const { token } = answer.claim;
    const record = this.recordOf(job);
    if (record.last && compareTokens(token, record.last) <= 0) record.fallen.push(token.text);
    record.last = token;
    record.grants += 1;
    if (job === HOT) this.grants[index] = (this.grants[index] ?? 0) + 1;
    await answer.claim.release();
  }
}

let server: ZooKeeperServer;
let address: SteadyAddress;
let zookeepers: ZooKeeper[];
const unhandled: unknown[] = [];
const noteUnhandled = (reason: unknown) => unhandled.push(reason);

beforeAll(async () => {
  process.on("unhandledRejection", noteUnhandled);
  // empty claim paths stay, so that one counter gives all numbers of a job
  const zookeeper = { tickTimeMs: 500, containerCheckIntervalMs: 86_400_000 };
  server = await startZooKeeper({ zookeeper });
  address = await SteadyAddress.of(server);
  zookeepers = Array.from(
    { length: SESSIONS },
    () =>
      new ZooKeeper({
        connect: address.connect,
        sessionTimeoutMs: SESSION_MS,
        connectTimeoutMs: BOUND_MS,
      }),
  );
});
afterAll(async () => {
  process.off("unhandledRejection", noteUnhandled);
  await address?.close();
  await Promise.all((zookeepers ?? []).map((each) => each.close()));
  await server?.stop();
});

const sessionOf = (source: CountedSessions) =>
  source.session(Deadline.after(BOUND_MS, systemClock));

/** Everybody is granted the hot job so many times more, and nobody waits for longer than the bound in between. */
async function progress(load: Load, turns: number, round: number): Promise<void> {
  for (let turn = 1; turn <= turns; turn += 1) {
    const goals = load.grants.map((grants) => grants + 1);
    try {
      await vi.waitFor(() => {
        expect(load.faults).toEqual([]);
        const behind = goals.filter((goal, index) => (load.grants[index] ?? 0) < goal).length;
        expect(behind, "contenders that are not granted any more").toBe(0);
      }, WAIT);
    } catch (error) {
      throw new Error(`after kill ${round}, turn ${turn}: ${await load.describe()}`, {
        cause: error,
      });
    }
  }
}

/** What keeps this process busy, by kind: timers, sockets, requests. */
function resources(): { [kind: string]: number } {
  const counts: { [kind: string]: number } = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** No contender is left, and no watch. */
async function nothingIsLeft(source: CountedSessions): Promise<void> {
  await vi.waitFor(async () => {
    const session = await sessionOf(source);
    for (const job of [HOT, ...COLD]) {
      expect(await childrenOf(session, claimPath(job)), job).toEqual([]);
    }
    expect(await fourLetterWord(server.connect, "wchs")).toContain("Total watches:0");
  }, WAIT);
}

describe(`a server that is killed and started again ${ROUNDS} times under load`, () => {
  it("hangs no contender, orphans no znode, leaks nothing, and lets tokens rise", {
    timeout: 60_000 + ROUNDS * 30_000,
  }, async () => {
    const sources = zookeepers.map((zookeeper) => new CountedSessions(zookeeper));
    await Promise.all(sources.map(sessionOf));
    const idle = resources();
    const load = new Load(sources);
    const memory: number[] = [];
    try {
      await progress(load, 1, 0);
      for (let round = 0; round < ROUNDS; round += 1) {
        await server.kill();
        await address.restart();
        await progress(load, TURNS[round % TURNS.length] as number, round + 1);
        memory.push(process.memoryUsage().rss);
      }
    } finally {
      await load.stop();
    }

    expect(load.faults).toEqual([]);
    await nothingIsLeft(sources[0] as CountedSessions);
    for (const [job, { fallen }] of load.records) expect(fallen, job).toEqual([]);
    const { grants, last } = load.recordOf(HOT);
    const unused = (last?.sequence ?? 0) + 1 - grants;
    expect(unused).toBeLessThanOrEqual((ROUNDS + 1) * ATTEMPTS_PER_RESTART);
    expect(sources.map(({ subscriptions }) => subscriptions)).toEqual(sources.map(() => 0));
    await vi.waitFor(() => {
      for (const [kind, count] of Object.entries(resources())) {
        expect(count, kind).toBeLessThanOrEqual((idle[kind] ?? 0) + OWN_TIMERS);
      }
    }, WAIT);
    // the first quarter fills the heap; afterwards it may breathe, but not grow with the rounds
    const early = Math.max(...memory.slice(0, Math.ceil(ROUNDS / 4)));
    expect(memory.at(-1)).toBeLessThan(early * 1.5 + 64 * 2 ** 20);
    expect(unhandled).toEqual([]);
  });
});
