/**
 * The fence as the scripts read it from its hash: what is well formed, and what it says. Written from the scripts'
 * headers, not from their code, so that one can be held against the other.
 */

/** The fields of a fence, as in the hash: texts of which each character is a byte. */
export type FenceFields = Partial<Record<FenceField, string>>;

export type FenceField =
  | "token"
  | "job"
  | "state"
  | "holder"
  | "digest"
  | "revision"
  | "committedAt"
  | "order"
  | "committedToken"
  | "committedHolder"
  | "encoding"
  | "stale"
  | "observed"
  | "lastStaleToken"
  | "lastStaleAt";

/** The fields that describe the last result. */
export const RESULT_FIELDS = [
  "digest",
  "revision",
  "committedAt",
  "committedToken",
  "committedHolder",
  "encoding",
] as const;

const GENERATION_MAX = "09223372036854775807";
const SEQUENCE_MAX = "2147483646";

export function isToken(text: string): boolean {
  const match = /^\d{5}\.(\d{20})\.(\d{10})$/.exec(text);
  if (match === null) return false;
  const [, generation = "", sequence = ""] = match;
  return generation <= GENERATION_MAX && sequence <= SEQUENCE_MAX;
}

export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

export function isOrder(text: string): boolean {
  return /^\d{16}$/.test(text);
}

/** 1 to 2^53 - 1. */
export function isMs(text: string): boolean {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text));
}

/** At most 64 bytes, as every field of a fence. */
export function isShort(text: string, least = 0): boolean {
  return text.length >= least && text.length <= 64;
}

function isCount(text: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(text);
}

/** The name of the first field that is not as it must be. */
export function faultIn(fence: FenceFields): FenceField | undefined {
  const { token, job, state, digest, revision, committedAt, committedToken } = fence;
  if (token === undefined || !isToken(token)) return "token";
  if (job === undefined || !isShort(job, 1)) return "job";
  const optional: [FenceField, (text: string) => boolean][] = [
    ["order", isOrder],
    ["stale", isCount],
    ["observed", isCount],
    ["lastStaleToken", isToken],
    ["lastStaleAt", isCount],
  ];
  for (const [field, isRight] of optional) {
    const text = fence[field];
    if (text !== undefined && !isRight(text)) return field;
  }
  if (state !== "open" && state !== "committed") return "state";
  if (state === "open") {
    if (committedToken === undefined) return undefined;
    if (!isToken(committedToken) || token < committedToken) return "committedToken";
  }
  if (digest === undefined || !isDigest(digest)) return "digest";
  if (revision === undefined || !isCount(revision)) return "revision";
  if (committedAt === undefined || !isCount(committedAt)) return "committedAt";
  return undefined;
}
