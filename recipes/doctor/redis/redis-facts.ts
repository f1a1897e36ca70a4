/**
 * What the doctor knows of a Redis server, as the judgements take it. Pure.
 */
import { type Seen, Unseen } from "../finding.js";
import type { ClusterFacts } from "./cluster.js";
import type { RightsFacts } from "./rights.js";

/** The fields of `INFO`, by name. */
export type Info = ReadonlyMap<string, string>;

/** The settings that are asked for by name: `CONFIG GET *` would show passwords. */
export const SETTINGS = [
  "maxmemory",
  "maxmemory-policy",
  "appendonly",
  "appendfsync",
  "save",
  "min-replicas-to-write",
  "min-replicas-max-lag",
] as const;

export type Setting = (typeof SETTINGS)[number];

export interface RedisFacts {
  info: Seen<Info>;
  settings: Record<Setting, Seen<string>>;
  /** Milliseconds by which the server's clock is ahead of ours. */
  clockAheadMs: Seen<number>;
  /** Undefined where the server is no part of a cluster, or that could not be seen. */
  cluster: Seen<ClusterFacts> | undefined;
  rights: Seen<RightsFacts>;
}

export function parseInfo(text: string): Info {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** A field of `INFO`. */
export function infoOf({ info }: RedisFacts, name: string): Seen<string> {
  if (info instanceof Unseen) return info;
  return info.get(name) ?? new Unseen(`INFO has no ${name}`);
}

/** A setting, or the field of `INFO` that says the same where `CONFIG GET` is not allowed. */
export function settingOf(facts: RedisFacts, name: Setting, infoName: string): Seen<string> {
  const set = facts.settings[name];
  if (!(set instanceof Unseen)) return set;
  const told = infoOf(facts, infoName);
  return told instanceof Unseen ? set : told;
}

/** A number of `INFO`; undefined where it is not there. */
export function numberOf(facts: RedisFacts, name: string): number | undefined {
  const text = infoOf(facts, name);
  return text instanceof Unseen || text === "" ? undefined : Number(text);
}
