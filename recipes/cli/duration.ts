/**
 * Durations and sizes as people write them on a command line. Pure.
 */
import { OptionError } from "../../lib/errors.js";

const UNITS_MS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const UNITS_BYTES: Record<string, number> = { B: 1, KiB: 1_024, MiB: 1_024 ** 2, GiB: 1_024 ** 3 };

/** Longest duration: 2^31 - 1 milliseconds times a thousand, about 68 years; it keeps sums exact. */
const DURATION_MS_MAX = 2_147_483_647_000;

/**
 * Milliseconds of `500ms`, `10s`, `5m`, `2h` or `7d`.
 *
 * @throws OptionError for anything else, also for a number without a unit
 */
export function parseDurationMs(text: string, flag: string): number {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/.exec(text);
  const ms = Math.round(Number(match?.[1]) * (UNITS_MS[match?.[2] ?? ""] ?? Number.NaN));
  if (!(ms >= 0 && ms <= DURATION_MS_MAX)) {
    throw new OptionError(
      `${flag} takes a duration such as 500ms, 10s or 5m; it is ${JSON.stringify(text)}`,
    );
  }
  return ms;
}

/**
 * Bytes of `4096B`, `64KiB`, `16MiB` or `1GiB`.
 *
 * @throws OptionError for anything else
 */
export function parseBytes(text: string, flag: string): number {
  const match = /^(\d{1,12})(B|KiB|MiB|GiB)$/.exec(text);
  const bytes = Number(match?.[1]) * (UNITS_BYTES[match?.[2] ?? ""] ?? Number.NaN);
  if (!Number.isSafeInteger(bytes)) {
    throw new OptionError(
      `${flag} takes a size such as 4096B, 64KiB or 16MiB; it is ${JSON.stringify(text)}`,
    );
  }
  return bytes;
}

/** A duration for people: `340 ms`, `12.5 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const pairs: [number, string, number, string][] = [
    [86_400_000, "d", 3_600_000, "h"],
    [3_600_000, "h", 60_000, "min"],
    [60_000, "min", 1_000, "s"],
  ];
  const [large, largeName, small, smallName] = pairs.find(([unit]) => ms >= unit) ?? [
    60_000,
    "min",
    1_000,
    "s",
  ];
  return `${Math.floor(ms / large)} ${largeName} ${Math.floor((ms % large) / small)} ${smallName}`;
}
