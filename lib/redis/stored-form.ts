/**
 * How a job, a holder and a digest are stored in the fence: every field within 64 bytes, so that Redis keeps the
 * hash in its compact form. Pure.
 */
import { createHash } from "node:crypto";

/** Most bytes of a field of the fence. */
export const FIELD_BYTES_MAX = 64;

const HASHED = "sha256:";

/** The job id as it is stored: itself, or its SHA-256 when it is too long or looks like such a hash. */
export function storedJob(job: string): string {
  if (Buffer.byteLength(job) <= FIELD_BYTES_MAX && !job.startsWith(HASHED)) return job;
  return HASHED + createHash("sha256").update(job).digest("base64url");
}

/** The holder as it is stored: cut to 64 bytes of UTF-8, never inside a character. */
export function storedHolder(holder: string): string {
  const bytes = Buffer.from(holder.toWellFormed());
  if (bytes.length <= FIELD_BYTES_MAX) return bytes.toString();
  let end = FIELD_BYTES_MAX;
  while (isContinuation(bytes[end])) end--;
  return bytes.toString("utf8", 0, end);
}

/** SHA-256 of a value, in lower-case hexadecimal. */
export function digestOf(value: Uint8Array): string {
  return createHash("sha256").update(value).digest("hex");
}

/** The second to fourth bytes of a character in UTF-8 are 10xxxxxx. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}
