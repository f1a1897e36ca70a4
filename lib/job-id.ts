/**
 * Job ids as znode names: any string, encoded reversibly into one path component.
 * Pure; the encoding is percent form over UTF-8 with a small safe set, so two different ids never share a znode.
 */
import { JobIdError } from "./errors.js";

/** The longest job id, in bytes of UTF-8. */
export const JOB_ID_BYTES_MAX = 512;

const UNSAFE = /[^A-Za-z0-9_-]/gu;
const ENCODED = /^(?:[A-Za-z0-9._-]|%[0-9A-F]{2})+$/;

/**
 * Checks a job id and gives it back.
 *
 * @throws JobIdError when it is empty, longer than 512 bytes of UTF-8, or holds half a surrogate pair
 */
export function checkJobId(id: string): string {
  if (typeof id !== "string" || id === "") throw new JobIdError("the job id must not be empty");
  if (!id.isWellFormed()) {
    throw new JobIdError("the job id is not valid Unicode: it holds half of a surrogate pair");
  }
  const bytes = Buffer.byteLength(id);
  if (bytes > JOB_ID_BYTES_MAX) {
    throw new JobIdError(
      `the job id is ${bytes} bytes long; at most ${JOB_ID_BYTES_MAX} bytes of UTF-8 are allowed`,
    );
  }
  return id;
}

/**
 * The znode name of a job id. Letters, digits, `_`, `-` and inner dots stay as they are.
 *
 * @throws JobIdError as {@link checkJobId}
 */
export function encodeJobId(id: string): string {
  checkJobId(id);
  // ZooKeeper forbids the components "." and "..", and reserves "zookeeper".
  if (id === "zookeeper") return "%7Aookeeper";
  return id.replace(UNSAFE, (character, offset: number) =>
    character === "." && offset > 0 ? "." : percent(character),
  );
}

/**
 * The job id of a znode name, or undefined when the name is not one that {@link encodeJobId} gives.
 */
export function decodeJobId(name: string): string | undefined {
  if (!ENCODED.test(name)) return undefined;
  let id: string;
  try {
    id = decodeURIComponent(name);
  } catch {
    return undefined; // percent bytes that are not UTF-8: a stranger's node
  }
  return isEncodingOf(name, id) ? id : undefined;
}

function isEncodingOf(name: string, id: string): boolean {
  if (id === "" || !id.isWellFormed() || Buffer.byteLength(id) > JOB_ID_BYTES_MAX) return false;
  return encodeJobId(id) === name;
}

function percent(character: string): string {
  return Array.from(
    Buffer.from(character),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");
}
