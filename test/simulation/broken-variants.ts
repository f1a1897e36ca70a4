/**
 * A gallery of faults put into the production code on purpose, each of which people have really made. Goal: the checks
 * are known to be able to fail. A variant that survives is a hole in them.
 */
import type { FaultName } from "../../recipes/testing/index.js";
import type { Mutation } from "./mutated-build.js";

export interface BrokenVariant {
  name: string;
  mutations: Mutation[];
  /** What one of the violations that it must cause says. */
  violates: RegExp;
  /** Faults that bring it to light; all, where none are named. */
  faults?: readonly FaultName[];
  /** It is caught by one of so many seeds, from 1 on. */
  withinSeeds: number;
}

const BLOCKED = /not everybody got the job|are left|no last round/;
const TOO_EARLY = /although .* was before it|had not been told/;
const TOLD_LATE = /had not been told/;
const OVERWRITTEN = /lies on top of|came after the work/;
const TWICE = /granted twice|was granted after|no last round was committed: stale/;
const TOO_MANY = /made \d+ contenders/;
const HERD = /woke \d+ waiters/;

/** A fault of one piece of text. */
function variant(
  name: string,
  options: Mutation & Partial<BrokenVariant> & { violates: RegExp },
): BrokenVariant {
  const { violates, withinSeeds = 200, faults = [], ...mutation } = options;
  return { name, mutations: [mutation], violates, withinSeeds, faults };
}

const CONTENDER = "recipes/claim/contender";
const ATTEMPT = "recipes/claim/attempt";
const HELD = "recipes/claim/held-claim";
const COUNTDOWN = "recipes/claim/countdown";
const COUNTER_END = "recipes/claim/counter-end";
const PREDECESSOR = "recipes/claim/predecessor";
const FENCED_RUN = "recipes/fenced-run";
const SESSION = "lib/zookeeper/session";
const NAMES = "lib/zookeeper/znode-name";
const ORDER = "lib/zookeeper/queue-order";
const TOKEN = "lib/token";
const WRITES = "lib/redis/sink-writes";
const FENCED_WRITE = "lib/redis/fenced-write";
const ROUND = "recipes/compact/round";
const SCRIPTS = "recipes/testing/simulated-scripts";
const ENTRY = "recipes/testing/simulated-entry";

export const BROKEN_VARIANTS: BrokenVariant[] = [
  variant("a create whose reply was lost counts as not done: no uuid recovery", {
    file: CONTENDER,
    find: "children.filter((child) => child.startsWith(this.#prefix))",
    put: "children.filter(() => false)",
    violates: BLOCKED,
  }),
  variant("the recovery looks at a server that lags, without a sync", {
    file: CONTENDER,
    find: "await this.session.sync(this.claimPath); const { children }",
    put: "const { children }",
    violates: BLOCKED,
    faults: ["loseReply", "slowFollower", "cut"],
    withinSeeds: 2_000,
  }),
  variant("another session's contender is adopted", {
    file: CONTENDER,
    find: "if ((await this.#ownerOf(path)) !== this.session.id)",
    put: "if ((await this.#ownerOf(path)) === undefined)",
    violates: /contender of another session/,
    withinSeeds: 1_000,
  }),
  variant("any error of the recovery counts as not there, as `pathExists` has it", {
    file: CONTENDER,
    find: `await this.session.sync(this.claimPath);
      const { children } = await this.session.list(this.claimPath);`,
    put: `const { children } = await this.session
      .sync(this.claimPath)
      .then(() => this.session.list(this.claimPath))
      .catch(() => ({ children: [] }));`,
    violates: BLOCKED,
    faults: ["loseReply", "cut", "restartServer"],
    withinSeeds: 2_000,
  }),
  variant("the delete is tried once", {
    file: CONTENDER,
    find: "if (!(error instanceof ConnectionLossError)) throw error; } } } }",
    put: "return; } } } }",
    violates: BLOCKED,
  }),
  variant("a wait that is cancelled leaves its contender behind", {
    file: ATTEMPT,
    find: "if (!granted) await leave(context, contender);",
    put: "if (!granted && !context.options.signal?.aborted) await leave(context, contender);",
    violates: BLOCKED,
  }),
  variant("a wake-up is taken for a grant, without a listing", {
    file: ATTEMPT,
    find: 'return "wait"; }',
    put: 'return { outcome: "granted", claim: grant(context, contender, { own: position.own, listing }) }; }',
    violates: TOO_EARLY,
  }),
  variant("a broken connection is a reason for a new contender", {
    file: ATTEMPT,
    find: "if (error instanceof NoNodeError) return undefined; if (!(error instanceof ConnectionLossError))",
    put: "return undefined; if (true)",
    violates: TOO_MANY,
    faults: ["cut", "loseReply", "restartServer"],
    withinSeeds: 1_000,
  }),
  variant("everybody watches the first contender", {
    file: ATTEMPT,
    find: "position.predecessor.name",
    put: "contenders[0].name",
    violates: HERD,
  }),
  variant("the parent is watched instead of the predecessor", {
    file: ATTEMPT,
    find: "path: predecessor,",
    put: "path,",
    violates: BLOCKED,
  }),
  variant("the predecessor is read and not watched", {
    file: PREDECESSOR,
    find: "session.read(path, { watch: true })",
    put: "session.read(path, { watch: false })",
    violates: BLOCKED,
  }),
  variant("the queue is ordered by the text of names", {
    file: ORDER,
    find: "a.sequence - b.sequence",
    put: "(a.name < b.name ? -1 : 1)",
    violates: /although .* was before it|had not been told|woke/,
  }),
  variant("a lower number is overlooked when it is the nearest", {
    file: ORDER,
    find: "sequence <= own.sequence",
    put: "sequence < own.sequence - 1",
    violates: TOO_EARLY,
  }),
  variant("the sign of a number is read from the dash that separates it", {
    file: NAMES,
    find: '}-lock-` }, { form: "go',
    put: '}-lock` }, { form: "go',
    violates: /./,
  }),
  variant("the local deadline is counted from when the connection broke", {
    file: COUNTDOWN,
    find: "return this.#options.session.lastConfirmedAtMs + this.#wholeMs();",
    put: `const { session } = this.#options;
      if (session.state === "CONNECTED") this.brokeAtMs = session.clock.nowMs();
      return (this.brokeAtMs ?? session.lastConfirmedAtMs) + this.#wholeMs();`,
    violates: TOLD_LATE,
  }),
  variant("the timeout that was asked for is used instead of the negotiated one", {
    file: SESSION,
    find: "this.#granted = granted;",
    put: "this.#granted = { ...granted, timeoutMs: 30_000 };",
    violates: /had not been told|not everybody/,
  }),
  variant("the local deadline has no margin", {
    file: COUNTDOWN,
    find: "return session.negotiatedTimeoutMs * (1 - MARGIN_SHARE) - stopGraceMs;",
    put: "return session.negotiatedTimeoutMs;",
    violates: TOLD_LATE,
    faults: ["partition", "stop"],
    withinSeeds: 1_000,
  }),
  variant("the claim has no local deadline, and learns of its end from the server", {
    file: HELD,
    find: 'onPassed: () => this.#lose("deadline"),',
    put: "onPassed: () => {},",
    violates: TOLD_LATE,
  }),
  variant("an exchange counts from its reply instead of from its start", {
    file: "lib/zookeeper/confirmation",
    find: "moment.atMs = Math.max(moment.atMs, startedAtMs)",
    put: "moment.atMs = clock.nowMs()",
    violates: TOLD_LATE,
    faults: ["slowLink", "partition"],
    withinSeeds: 6_000,
  }),
  variant("a session that is gone counts as one whose connection is broken", {
    file: SESSION,
    find: "closed: () => this.giveUp(),",
    put: 'closed: () => this.#moveTo("SUSPENDED"),',
    violates: /./,
    withinSeeds: 1_000,
  }),
  variant("nobody watches a client that reports and hears nothing", {
    file: SESSION,
    find: "this.#watchdog.start();",
    put: "",
    violates: BLOCKED,
  }),
  variant("a session that was closed by its user goes on as before for those who wait", {
    file: SESSION,
    find: "if (this.#handle !== undefined && !over) return send(this.#handle);",
    put: "if (over) return new Promise(() => {}); return send(this.#handle);",
    violates: BLOCKED,
  }),
  variant("the sink does not compare", {
    file: ENTRY,
    find: 'if (token < stands) return ["stale", stands];',
    put: "",
    violates: OVERWRITTEN,
  }),
  {
    name: "the check comes before the write instead of with it",
    mutations: [
      {
        file: WRITES,
        find: 'return this.#asking.write({ ...{ identity: request, script: "commitResult"',
        put: `const { ask } = await import("./ask.js");
          const fence = await ask(this.options.connection, {
            request: () => ({ script: "readResult", keys: keysOf(key).slice(0, 2), values: [] }),
            writes: false,
            answerOf: (reply) => String(reply[4]),
          }, limits);
          if (token < fence) return { outcome: "stale", fenceText: fence };
          return this.#asking.write({ ...{ identity: request, script: "commitResult"`,
      },
      {
        file: ENTRY,
        find: 'if (token < stands) return ["stale", stands];',
        put: 'if (token < stands && arguments[0].order === "") return ["stale", stands];',
      },
    ],
    violates: OVERWRITTEN,
    withinSeeds: 2_000,
  },
  variant("a token that is equal to the fence is refused, where it must pass", {
    file: ENTRY,
    find: "if (token < stands)",
    put: "if (token <= stands)",
    violates: BLOCKED,
  }),
  variant("the fence is raised with the commit only", {
    file: FENCED_RUN,
    find: "const ended = result && (await raiseFence(held, result));",
    put: "const ended = undefined;",
    violates: OVERWRITTEN,
    withinSeeds: 1_000,
  }),
  {
    name: "a claim that was lost is silently claimed again, and its old result committed",
    mutations: [
      {
        file: FENCED_RUN,
        find: "runHeld({ claim, ",
        put: "runHeld({ claim, again: { ...claimOptions, waitMs: 60_000 }, ",
      },
      {
        file: FENCED_RUN,
        find: "const lost = lossOf(claim); if (lost !== undefined)",
        put: `let lost = lossOf(claim);
          if (lost !== undefined) {
            const answer = await claimJob(held.again);
            if (answer.outcome === "granted") {
              held = { ...held, claim: answer.claim };
              lost = undefined;
            }
          }
          if (lost !== undefined)`,
      },
    ],
    violates: /was computed under/,
    withinSeeds: 1_000,
  },
  variant("the token is the bare number, without the age of its parent", {
    file: ATTEMPT,
    find: "generation: generationFromCzxid(listing.stat.czxid),",
    put: "generation: 0n,",
    violates: TWICE,
  }),
  {
    name: "numbers at the end of the counter are granted",
    mutations: [
      {
        file: TOKEN,
        find: "return sequence < 0 || sequence > SEQUENCE_MAX;",
        put: "return false;",
      },
      {
        file: COUNTER_END,
        find: "return sequence < 0 || sequence >= HOLD_BACK_FROM;",
        put: "return false;",
      },
    ],
    violates: /was granted/,
    withinSeeds: 1_000,
  },
  {
    name: "fences of finished jobs are removed, and no floor stands for them",
    mutations: [
      {
        file: SCRIPTS,
        find: "if (stands !== floor || floor < token)",
        put: "if (stands === token)",
      },
      {
        file: ROUND,
        find: "if (await fences.raiseFloor(floorKey, floorText, signal))",
        put: "if (signal === undefined)",
      },
    ],
    violates: OVERWRITTEN,
    faults: ["compact", "stop", "slowSink"],
    withinSeeds: 1_000,
  },
  variant("below a floor, nobody asks whether the claim is held", {
    file: FENCED_WRITE,
    find: "await confirm(signal);",
    put: "signal?.throwIfAborted();",
    violates: OVERWRITTEN,
    faults: ["compact", "stop", "slowSink"],
    withinSeeds: 1_000,
  }),
  variant("a live claim cannot say that it is held, and is locked out by a floor", {
    file: FENCED_RUN,
    find: "return { job: claim.job, token: claim.token, holder, confirm };",
    put: "return { job: claim.job, token: claim.token, holder };",
    violates: /was refused at .*, no claim's/,
    faults: ["compact"],
  }),
  variant("a claim that was found alive stays so under every later floor", {
    file: ENTRY,
    find: "return alive === floor ? undefined",
    put: 'return alive !== "" ? undefined',
    violates: OVERWRITTEN,
    faults: ["compact", "slowSink", "loseSinkMessages", "expireSession", "deleteContender"],
    withinSeeds: 5_000,
  }),
  variant("nobody holds back near the end of the counter", {
    file: COUNTER_END,
    find: "return sequence < 0 || sequence >= HOLD_BACK_FROM;",
    put: "return false;",
    violates: /end of ZooKeeper.s 32-bit counter/,
    withinSeeds: 1_000,
  }),
];
