/**
 * A store in memory that answers the scripts of the sink as a Redis does, for deterministic simulations: each call is
 * one atomic step, and the time is an argument. What strangers do to a Redis can be done to it too.
 */
import type { ScriptValues } from "../../lib/redis/attempt.js";
import type { ScriptName } from "../../lib/redis/script-files.js";
import type { AcceptedWrite, ScriptCall } from "./script-call.js";
import { SimulatedKeyspace } from "./simulated-keyspace.js";
import { SIMULATED_SCRIPTS } from "./simulated-scripts.js";

/** A call of a script. */
export interface StoreRequest {
  script: ScriptName;
  keys: string[];
  values: ScriptValues;
}

export class SimulatedStore {
  /** Every accepted write, in the store's own order; a stranger's deeds take nothing from it. */
  readonly accepted: AcceptedWrite[] = [];
  readonly keyspace = new SimulatedKeyspace();

  /** Runs a script; gives its reply as a client that asks for buffers gets it. */
  call({ script, keys, values }: StoreRequest, nowMs: number): Buffer[] {
    const call: ScriptCall = {
      ...{ keyspace: this.keyspace, keys, nowMs, values: values.map(binary) },
      bytes: (index) => Buffer.from(values[index] ?? ""),
      accept: (write) => this.accepted.push(write),
    };
    return SIMULATED_SCRIPTS[script](call).map((item) =>
      typeof item === "string" ? Buffer.from(item, "latin1") : item,
    );
  }

  /** A stranger's plain SET: another value, no time to live, and the fence knows nothing of it. */
  setValue(key: string, value: Uint8Array | string): void {
    this.keyspace.setString(key, Buffer.from(value));
  }

  /** A stranger's DEL of the value; the fence stays. */
  deleteValue(key: string): void {
    this.keyspace.delete(key);
  }

  /** A stranger's PEXPIREAT of the value, which is there until then, and gone at once when that is past. */
  expireAt(key: string, atMs: number, nowMs: number): void {
    this.keyspace.expireAt(key, atMs, nowMs);
  }

  /** A stranger's FLUSHALL: every value and every fence is gone. */
  forget(): void {
    this.keyspace.clear();
  }
}

/** A text of which each character is a byte. */
function binary(value: string | Buffer): string {
  if (typeof value !== "string") return value.toString("latin1");
  return /^[\0-\x7f]*$/.test(value) ? value : Buffer.from(value).toString("latin1");
}
