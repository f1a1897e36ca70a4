/** Stand-in. */
import type {
  AdvanceAnswer,
  CommitAnswer,
  CommitRequest,
  ReadAnswer,
  WriteIdentity,
} from "../../lib/sink.js";

interface Stored {
  fence: string;
  job: string;
  state: "open" | "committed";
  committed: { token: string; value: string; atMs: number } | undefined;
}
export class SimulatedStore {
  readonly keys = new Map<string, Stored>();
  readonly accepted: { key: string; tokenText: string; value: string }[] = [];
  advanceFence({ key, job, token }: WriteIdentity, nowMs: number): AdvanceAnswer {
    const stored = this.keys.get(key);
    if (stored && stored.job !== job) return { outcome: "foreign", owner: stored.job };
    if (stored && token.text < stored.fence) return { outcome: "stale", fenceText: stored.fence };
    const present = stored?.committed && {
      tokenText: stored.committed.token,
      revision: 1,
      ageMs: nowMs - stored.committed.atMs,
    };
    if (stored?.fence === token.text) return { outcome: "current", present };
    this.keys.set(key, { fence: token.text, job, state: "open", committed: stored?.committed });
    return { outcome: "advanced", present };
  }
  commitResult({ key, job, token, value }: CommitRequest, nowMs: number): CommitAnswer {
    const stored = this.keys.get(key);
    if (stored) {
      if (stored.job !== job) return { outcome: "foreign", owner: stored.job };
      if (token.text < stored.fence) return { outcome: "stale", fenceText: stored.fence };
      if (token.text === stored.fence && stored.state === "committed")
        return stored.committed?.value === String(value)
          ? { outcome: "duplicate", revision: 1 }
          : { outcome: "conflict" };
    }
    this.keys.set(key, {
      fence: token.text,
      job,
      state: "committed",
      committed: { token: token.text, value: String(value), atMs: nowMs },
    });
    this.accepted.push({ key, tokenText: token.text, value: String(value) });
    return { outcome: "committed", revision: 1 };
  }
  readResult(key: string, _nowMs: number): ReadAnswer {
    return { key, value: undefined, fence: undefined, matches: undefined };
  }
}
