/**
 * An authority of a test's own, and certificates that it has signed, made with `openssl` in a temporary folder.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export interface Certificate {
  cert: string;
  key: string;
  certFile: string;
  keyFile: string;
  /** Both in one file, as ZooKeeper reads them. */
  file: string;
}

export class Authority implements AsyncDisposable {
  private constructor(readonly folder: string) {}

  static async make(): Promise<Authority> {
    const authority = new Authority(await mkdtemp(join(tmpdir(), "fencekeeper-ca-")));
    const subject = ["-subj", "/CN=an authority of a test", "-days", "2"];
    await authority.#openssl(
      "req",
      "-x509",
      ...KEY,
      ...subject,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
    );
    return authority;
  }

  get caFile(): string {
    return join(this.folder, "ca.pem");
  }

  /** Its own certificate. */
  ca(): Promise<string> {
    return readFile(this.caFile, "utf8");
  }

  /**
   * @param name of a host, which is what the certificate is good for
   * @param days for which it lasts; -1 for one that has expired
   */
  async sign(name: string, days = 2): Promise<Certificate> {
    const [key, request, cert, names, file] = ["key", "csr", "crt", "ext", "pem"].map((ending) =>
      join(this.folder, `${name}.${days}.${ending}`),
    ) as [string, string, string, string, string];
    await writeFile(names, `subjectAltName=DNS:${name}`);
    await this.#openssl("req", ...KEY, "-subj", `/CN=${name}`, "-keyout", key, "-out", request);
    await this.#openssl(
      ...["x509", "-req", "-in", request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"],
      ...["-extfile", names, "-days", String(days), "-out", cert],
    );
    const texts = { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
    await writeFile(file, texts.key + texts.cert);
    return { ...texts, certFile: cert, keyFile: key, file };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #openssl(...args: string[]): Promise<void> {
    await promisify(execFile)("openssl", args, { cwd: this.folder });
  }
}
