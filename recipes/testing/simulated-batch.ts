/**
 * What `commitResults` does, on a simulated keyspace: all results of a batch, or none.
 */
import type { Reply, ScriptCall } from "./script-call.js";
import { faultInClaim, SimulatedEntry } from "./simulated-entry.js";
import { isDigest, isMs, isShort, isToken } from "./simulated-fence.js";
import { type JudgedCommit, judgeCommit, letThrough } from "./simulated-judgement.js";

/** In place of a digest: the fence is looked at, and nothing is changed. */
const GUARD = "guard";

const CLAIM_ARGUMENTS = 8;
const ARGUMENTS_EACH = 6;

export function commitResults(call: ScriptCall): Reply {
  const { keys, values, nowMs, keyspace } = call;
  const [token = "", job = "", holder = "", mode = "", order = "", ...more] = values;
  const [retentionMs = "", policy = "", touch = ""] = more;
  if (!isToken(token)) return ["badtoken"];
  if (mode !== "once" && mode !== "update") return ["badargument", "mode"];
  if (keys.length === 0 || keys.length % 3 !== 0) return ["badargument", "keys"];
  const count = keys.length / 3;
  if (values.length !== CLAIM_ARGUMENTS + ARGUMENTS_EACH * count) return ["badargument", "count"];
  const changes = Array.from({ length: count }, (_, index) => {
    const at = CLAIM_ARGUMENTS + ARGUMENTS_EACH * index;
    const [, digest = "", ttlMs = "", encoding = "", raised = "", alive = ""] = values.slice(at);
    const claim = { token, job, holder, order, raised, alive, retentionMs, policy, touch };
    return { index, claim, digest, ttlMs, encoding, value: call.bytes(at) };
  });
  for (const { claim, digest, ttlMs, encoding } of changes) {
    if (digest !== "" && digest !== GUARD && !isDigest(digest)) return ["badargument", "digest"];
    if (ttlMs !== "" && !isMs(ttlMs)) return ["badargument", "ttl"];
    if (!isShort(encoding)) return ["badargument", "encoding"];
    const bad = faultInClaim(claim);
    if (bad !== undefined) return ["badargument", bad];
  }

  const judged: ((typeof changes)[number] & JudgedCommit & { entry: SimulatedEntry })[] = [];
  let observed: string[] | undefined;
  for (const change of changes) {
    const [result = "", fence = "", floor = ""] = keys.slice(3 * change.index);
    const entry = new SimulatedEntry(keyspace, { result, fence, floor }, nowMs);
    const number = String(change.index + 1);
    if (entry.fault !== undefined) return numbered(entry.fault, number);
    const judgement = judge(entry, change, mode);
    const { refusal } = judgement;
    if (refusal !== undefined) {
      const [code, ...rest] = refusal;
      if (!letThrough(refusal, policy)) {
        if (code === "stale") entry.count("stale", token);
        return [code, number, ...rest];
      }
      observed ??= [number, code, ...rest];
    }
    judged.push({ ...change, ...judgement, entry });
  }

  const revisions = judged.map(({ digest, duplicateOf, revision }) =>
    digest === "" || digest === GUARD ? "0" : (duplicateOf ?? revision),
  );
  if (judged.every(({ duplicateOf }) => duplicateOf !== undefined)) {
    return ["duplicate", ...revisions];
  }
  judged.forEach((each, index) => {
    if (each.duplicateOf === undefined) write(call, each, revisions[index] ?? "");
  });
  return observed === undefined ? ["committed", ...revisions] : ["observed", ...observed];
}

function numbered([code = "", ...rest]: Reply, number: string): Reply {
  return [code, number, ...rest];
}

type Change = Parameters<typeof judgeCommit>[1] & { digest: string };

function judge(entry: SimulatedEntry, change: Omit<Change, "mode">, mode: string): JudgedCommit {
  const { claim, digest } = change;
  const refusal = entry.refusalOf(claim);
  if (digest === GUARD) {
    return { refusal, duplicateOf: refusal === undefined ? "0" : undefined, revision: "0" };
  }
  if (digest !== "") return judgeCommit(entry, { claim, digest, mode });
  const judged: JudgedCommit = { refusal, duplicateOf: undefined, revision: "0" };
  const { fence } = entry;
  const { token, order } = claim;
  if (refusal !== undefined || fence?.token !== token || order === "" || !fence.order)
    return judged;
  if (order === fence.order) return { ...judged, duplicateOf: "0" };
  return order < fence.order ? { ...judged, refusal: ["superseded"] } : judged;
}

interface Writing extends JudgedCommit {
  entry: SimulatedEntry;
  claim: Parameters<SimulatedEntry["commit"]>[0];
  digest: string;
  ttlMs: string;
  encoding: string;
  value: Buffer;
}

function write(call: ScriptCall, writing: Writing, revision: string): void {
  const { entry, claim, digest, ttlMs, encoding, value, refusal } = writing;
  const { result: key } = entry.keys;
  if (refusal !== undefined) {
    entry.count("observed", claim.token);
    if (digest === GUARD) return;
    if (digest === "") call.keyspace.delete(key);
    else entry.put(value, ttlMs);
    return;
  }
  if (digest === "") entry.invalidate(claim);
  else entry.commit(claim, { value, digest, revision, ttlMs, encoding });
  const written = digest === "" ? undefined : value.toString();
  call.accept({ key, tokenText: claim.token, value: written, revision: Number(revision) });
}
