/**
 * Files that options name: certificates and passwords.
 */
import { readFileSync } from "node:fs";
import { OptionError } from "../../lib/errors.js";
import type { TlsOptions } from "../../lib/tls/tls-options.js";

/** @throws OptionError when it cannot be read */
export function readText(file: string, option: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException; // readFileSync throws nothing else
    throw new OptionError(`the file of ${option} cannot be read: ${file} (${code})`, { cause });
  }
}

/**
 * What `--NAME-ca`, `--NAME-cert` and `--NAME-key` hold; undefined when none is given.
 *
 * @throws OptionError when a file cannot be read
 */
export function readTls(
  name: string,
  files: { ca: string | undefined; cert: string | undefined; key: string | undefined },
): TlsOptions | undefined {
  const { ca, cert, key } = files;
  if (!ca && !cert && !key) return undefined;
  return {
    ...(ca ? { ca: readText(ca, `--${name}-ca`) } : {}),
    ...(cert ? { cert: readText(cert, `--${name}-cert`) } : {}),
    ...(key ? { key: readText(key, `--${name}-key`) } : {}),
  };
}
