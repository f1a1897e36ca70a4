/**
 * A result's value as it is stored: compressed where that was asked for and pays, and with its digest.
 */
import { webcrypto } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { OptionError } from "../errors.js";
import { bytesOf } from "./request-form.js";
import { digestOf } from "./stored-form.js";

export interface CompressOptions {
  /** Smaller values are stored as they are. Default: 1024 bytes. */
  fromBytes?: number;
}

/** A value as it is stored. */
export interface StoredValue {
  bytes: Buffer;
  /** `gzip`, or empty for none. */
  encoding: string;
  /** SHA-256 of the bytes, in lower-case hexadecimal. */
  digest: string | Promise<string>;
}

const COMPRESS_FROM_BYTES = 1_024;

/** From here on the digest is computed on another thread, while the value is on its way. */
const DIGEST_APART_FROM_BYTES = 64 * 1_024;

const GZIP = "gzip";

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/**
 * At once, unless it has to be compressed: what is asked for before a sink is closed is sent before.
 *
 * @throws OptionError, ResultTooLargeError
 */
export function storedValue(
  value: Uint8Array | string,
  compress: CompressOptions | undefined,
): StoredValue | Promise<StoredValue> {
  const bytes = bytesOf(value);
  const from = compress?.fromBytes ?? COMPRESS_FROM_BYTES;
  if (!(from >= 0)) throw new OptionError(`compress.fromBytes must be 0 or more; it is ${from}`);
  if (compress === undefined || bytes.length < from) return withDigest(bytes, "");
  return zip(bytes).then((zipped) =>
    zipped.length < bytes.length ? withDigest(zipped, GZIP) : withDigest(bytes, ""),
  );
}

/** The value as it was given; bytes that are not what the fence describes are left as they are. */
export async function givenValue(bytes: Buffer, encoding: string): Promise<Buffer> {
  return encoding === GZIP ? unzip(bytes) : bytes;
}

function withDigest(bytes: Buffer, encoding: string): StoredValue {
  const apart = bytes.length >= DIGEST_APART_FROM_BYTES;
  return { bytes, encoding, digest: apart ? digestApart(bytes) : digestOf(bytes) };
}

async function digestApart(bytes: Buffer): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest("SHA-256", bytes)).toString("hex");
}
