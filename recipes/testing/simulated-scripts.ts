/**
 * What each script of the sink does, on a simulated keyspace: keys and arguments in, reply out. Written from the
 * scripts' headers; `test/integration/sink-differential.test.ts` holds it against the scripts on a real Redis.
 */
import type { ScriptName } from "../../lib/redis/script-files.js";
import type { Reply, ScriptCall } from "./script-call.js";
import { commitResults } from "./simulated-batch.js";
import { type ClaimArguments, faultInClaim, SimulatedEntry } from "./simulated-entry.js";
import { isDigest, isMs, isShort, isToken } from "./simulated-fence.js";
import { judgeCommit, letThrough } from "./simulated-judgement.js";

export const SIMULATED_SCRIPTS: Record<ScriptName, (call: ScriptCall) => Reply> = {
  advanceFence(call) {
    const [token = "", job = "", holder = "", alive = "", policy = "", touch = ""] = call.values;
    const rest = { order: "", raised: "", retentionMs: "" };
    const claim: ClaimArguments = { token, job, holder, alive, policy, touch, ...rest };
    const bad = badClaim(claim);
    if (bad !== undefined) return bad;
    const entry = entryOf(call);
    if (entry.fault !== undefined) return entry.fault;
    const refusal = entry.refusalOf(claim);
    if (refusal !== undefined) {
      const isObserved = letThrough(refusal, policy);
      if (isObserved) entry.count("observed", token);
      else if (refusal[0] === "stale") entry.count("stale", token);
      return isObserved ? ["observed", ...refusal] : refusal;
    }
    const present = [...entry.present, String(call.nowMs)];
    if (entry.fence?.token === token) return ["current", ...present];
    entry.raise(claim);
    return ["advanced", ...present];
  },

  commitResult(call) {
    const { keyspace, values, nowMs } = call;
    const [token = "", job = "", , digest = "", ttlMs = "", mode = "", holder = ""] = values;
    const [order = "", raised = "", alive = "", retentionMs = "", policy = ""] = values.slice(7);
    const [encoding = "", touch = ""] = values.slice(12);
    const claim = { token, job, holder, order, raised, alive, retentionMs, policy, touch };
    if (!isToken(token)) return ["badtoken"];
    if (!isDigest(digest)) return ["badargument", "digest"];
    if (ttlMs !== "" && !isMs(ttlMs)) return ["badargument", "ttl"];
    if (mode !== "once" && mode !== "update") return ["badargument", "mode"];
    if (!isShort(encoding)) return ["badargument", "encoding"];
    const bad = badClaim(claim);
    if (bad !== undefined) return bad;
    const entry = entryOf(call);
    if (entry.fault !== undefined) return entry.fault;
    const [, , , stage] = call.keys;
    const value = stage === undefined ? call.bytes(2) : keyspace.string(stage, nowMs);
    const judged = judgeCommit(entry, { claim, digest, mode });
    const { refusal, duplicateOf, revision } = judged;
    if (stage !== undefined && (duplicateOf !== undefined || value !== undefined)) {
      keyspace.delete(stage);
    }
    if (duplicateOf !== undefined) return ["duplicate", duplicateOf];
    const isObserved = refusal !== undefined && letThrough(refusal, policy);
    if (refusal !== undefined && !isObserved) {
      if (refusal[0] === "stale") entry.count("stale", token);
      return refusal;
    }
    if (value === undefined) return ["unstaged"];
    if (isObserved) {
      entry.put(value, ttlMs);
      entry.count("observed", token);
      return ["observed", ...refusal];
    }
    entry.commit(claim, { value, digest, revision, ttlMs, encoding });
    const { result: key } = entry.keys;
    call.accept({ key, tokenText: token, value: value.toString(), revision: Number(revision) });
    return ["committed", revision];
  },

  commitResults,

  invalidateResult(call) {
    const [token = "", job = "", holder = "", order = "", raised = "", ...more] = call.values;
    const [alive = "", retentionMs = "", policy = "", touch = ""] = more;
    const claim = { token, job, holder, order, raised, alive, retentionMs, policy, touch };
    const bad = badClaim(claim);
    if (bad !== undefined) return bad;
    const entry = entryOf(call);
    if (entry.fault !== undefined) return entry.fault;
    const { fence } = entry;
    let refusal = entry.refusalOf(claim);
    const last = fence?.token === token ? fence.order : undefined;
    if (refusal === undefined && order !== "" && last !== undefined) {
      if (order === last) return ["invalidated", "0"];
      if (order < last) refusal = ["superseded"];
    }
    if (refusal !== undefined) {
      if (letThrough(refusal, policy)) {
        call.keyspace.delete(entry.keys.result);
        entry.count("observed", token);
        return ["observed", ...refusal];
      }
      if (refusal[0] === "stale") entry.count("stale", token);
      return refusal;
    }
    const found = entry.isThere ? "1" : "0";
    entry.invalidate(claim);
    const { result: key } = entry.keys;
    call.accept({ key, tokenText: token, value: undefined, revision: 0 });
    return ["invalidated", found];
  },

  readResult(call) {
    const entry = entryOf(call);
    if (entry.fault !== undefined) return entry.fault;
    const fence = entry.fence ?? {};
    const value = call.keyspace.string(entry.keys.result, call.nowMs);
    const isCommitted = fence.state === "committed";
    return [
      ...["result", String(call.nowMs), value === undefined ? "0" : "1", value ?? ""],
      ...[fence.token, fence.job, fence.state, fence.holder].map((text) => text ?? ""),
      (isCommitted ? fence.token : fence.committedToken) ?? "",
      ...[fence.digest, fence.revision, fence.committedAt].map((text) => text ?? ""),
      (isCommitted ? fence.holder : fence.committedHolder) ?? "",
      ...[fence.encoding ?? "", fence.stale ?? "0", fence.observed ?? "0"],
      ...[fence.lastStaleToken ?? "", fence.lastStaleAt ?? ""],
    ];
  },

  raiseFloor({ keyspace, keys, values, nowMs }) {
    const [key = ""] = keys;
    const [token = ""] = values;
    if (!isToken(token)) return ["badtoken"];
    const floor = keyspace.string(key, nowMs)?.toString("latin1");
    if (floor !== undefined && !isToken(floor)) return ["corrupt", "floor"];
    if (floor !== undefined && token < floor) return ["stale", floor];
    if (floor === token) return ["current"];
    keyspace.setString(key, Buffer.from(token));
    return ["raised"];
  },

  dropFence(call) {
    const [token = "", floor = "", withResult = ""] = call.values;
    if (!isToken(token) || !isToken(floor)) return ["badtoken"];
    if (withResult !== "" && withResult !== "1") return ["badargument", "with"];
    const { fence, fault, keys, isThere } = entryOf(call);
    if (fault?.[0] === "corrupt") return fault;
    if (fence === undefined) return ["dropped"];
    if (fence.token !== token) return ["kept", "changed"];
    const stands = call.keyspace.string(keys.floor, call.nowMs)?.toString("latin1");
    if (stands !== floor || floor < token) return ["kept", "floor"];
    if (withResult === "" && isThere) return ["kept", "result"];
    call.keyspace.delete(keys.fence);
    return ["dropped"];
  },
};

function badClaim(claim: ClaimArguments): Reply | undefined {
  if (!isToken(claim.token)) return ["badtoken"];
  const bad = faultInClaim(claim);
  return bad === undefined ? undefined : ["badargument", bad];
}

function entryOf({ keyspace, keys, nowMs }: ScriptCall): SimulatedEntry {
  const [result = "", fence = "", floor = ""] = keys;
  return new SimulatedEntry(keyspace, { result, fence, floor }, nowMs);
}
