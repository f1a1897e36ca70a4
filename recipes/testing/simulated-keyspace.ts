/**
 * As much of a Redis keyspace as the scripts use: strings and hashes that may expire. The time is an argument.
 */

type Entry = ({ kind: "string"; value: Buffer } | { kind: "hash"; fields: Map<string, string> }) & {
  /** The last millisecond at which it is there; Infinity when it does not expire. */
  expiresAtMs: number;
};

export class SimulatedKeyspace {
  readonly #entries = new Map<string, Entry>();
  readonly #watchers = new Map<string, Set<() => void>>();

  /** Calls back when a key may have changed; one that expires says nothing. Gives a function that ends it. */
  watch(key: string, changed: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(changed));
    return () => watchers.delete(changed);
  }

  /** Keys that are there, in the order in which they came. */
  keys(nowMs: number): string[] {
    return [...this.#entries.keys()].filter((key) => this.#at(key, nowMs) !== undefined);
  }

  typeOf(key: string, nowMs: number): "string" | "hash" | "none" {
    return this.#at(key, nowMs)?.kind ?? "none";
  }

  string(key: string, nowMs: number): Buffer | undefined {
    const entry = this.#at(key, nowMs);
    return entry?.kind === "string" ? entry.value : undefined;
  }

  hash(key: string, nowMs: number): ReadonlyMap<string, string> | undefined {
    const entry = this.#at(key, nowMs);
    return entry?.kind === "hash" ? entry.fields : undefined;
  }

  setString(key: string, value: Buffer, expiresAtMs = Number.POSITIVE_INFINITY): void {
    this.#entries.set(key, { kind: "string", value, expiresAtMs });
    this.#changed(key);
  }

  /** Sets fields of a hash, which is made when there is none. */
  setFields(key: string, fields: Record<string, string>, nowMs: number): void {
    const entry = this.#at(key, nowMs);
    const isHash = entry?.kind === "hash";
    const kept = isHash ? [...entry.fields] : [];
    this.#entries.set(key, {
      kind: "hash",
      fields: new Map([...kept, ...Object.entries(fields)]),
      expiresAtMs: isHash ? entry.expiresAtMs : Number.POSITIVE_INFINITY,
    });
    this.#changed(key);
  }

  removeFields(key: string, names: readonly string[], nowMs: number): void {
    const entry = this.#at(key, nowMs);
    if (entry?.kind !== "hash") return;
    const fields = new Map([...entry.fields].filter(([name]) => !names.includes(name)));
    if (fields.size === 0) this.#entries.delete(key);
    else this.#entries.set(key, { ...entry, fields });
    this.#changed(key);
  }

  /** Lets a key expire, at once when that is past; Infinity keeps it. */
  expireAt(key: string, atMs: number, nowMs: number): void {
    const entry = this.#at(key, nowMs);
    if (entry === undefined) return;
    if (atMs <= nowMs) this.#entries.delete(key);
    else entry.expiresAtMs = atMs;
  }

  rename(from: string, to: string, nowMs: number): void {
    const entry = this.#at(from, nowMs);
    if (entry === undefined || from === to) return;
    this.#entries.delete(from);
    this.#entries.set(to, entry);
    this.#changed(from);
    this.#changed(to);
  }

  delete(key: string): void {
    this.#entries.delete(key);
    this.#changed(key);
  }

  /** FLUSHALL, or a restart without data. */
  clear(): void {
    this.#entries.clear();
    for (const key of this.#watchers.keys()) this.#changed(key);
  }

  #changed(key: string): void {
    for (const changed of this.#watchers.get(key) ?? []) changed();
  }

  #at(key: string, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && nowMs <= entry.expiresAtMs ? entry : undefined;
  }
}
