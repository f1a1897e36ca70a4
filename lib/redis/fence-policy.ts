/**
 * Which keys are protected already: `enforce` refuses what is stale, `observe` lets it through and counts it. It can be
 * changed while a sink is in use, for shops that adopt fencing key by key. Pure.
 */
import { OptionError } from "../errors.js";

export type FenceMode = "enforce" | "observe";

export interface FencePolicyOptions {
  /** For keys that no prefix fits. Default: `enforce`. */
  default?: FenceMode;
  /** By the beginning of the key; the longest that fits decides. */
  prefixes?: Record<string, FenceMode>;
}

export class FencePolicy {
  #default: FenceMode = "enforce";
  #prefixes: [prefix: string, mode: FenceMode][] = [];

  /** @throws OptionError when a mode is not one */
  constructor(options: FencePolicyOptions = {}) {
    this.replace(options);
  }

  modeOf(key: string): FenceMode {
    return this.#prefixes.find(([prefix]) => key.startsWith(prefix))?.[1] ?? this.#default;
  }

  /** Takes effect with the next call of every sink that has this policy. */
  set(prefix: string, mode: FenceMode): void {
    this.replace({
      default: this.#default,
      prefixes: { ...Object.fromEntries(this.#prefixes), [prefix]: mode },
    });
  }

  /** Changes everything at once. */
  replace(options: FencePolicyOptions): void {
    const prefixes = Object.entries(options.prefixes ?? {});
    for (const mode of [options.default ?? "enforce", ...prefixes.map(([, each]) => each)]) {
      if (mode !== "enforce" && mode !== "observe") {
        throw new OptionError(
          `a fence mode is "enforce" or "observe"; it is ${JSON.stringify(mode)}`,
        );
      }
    }
    this.#default = options.default ?? "enforce";
    this.#prefixes = prefixes.sort(([a], [b]) => b.length - a.length);
  }

  toJSON(): Required<FencePolicyOptions> {
    return { default: this.#default, prefixes: Object.fromEntries(this.#prefixes) };
  }
}
