/**
 * What a TLS connection to a server is made with, checked before anything is opened.
 */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { OptionError } from "../errors.js";

export interface TlsOptions {
  /** PEM text of the authorities to trust. Default: those that Node trusts. */
  ca?: string | Buffer;
  /** PEM text of our own certificate, for servers that want one. */
  cert?: string | Buffer;
  /** PEM text of the key to it, not encrypted. */
  key?: string | Buffer;
  /** Name that the servers' certificates must have. Default: the host of each server. */
  servername?: string;
  /** A certificate is always verified: its chain and its name. There is no way to turn that off. */
  rejectUnauthorized?: true;
}

/** The same as texts, fit for a message to another thread. */
export interface TlsIdentity {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
}

/** @throws OptionError when they cannot be used; the message holds no secret */
export function tlsIdentityOf(options: TlsOptions): TlsIdentity {
  const { ca, cert, key, servername } = options;
  if ((options.rejectUnauthorized ?? true) !== true) {
    throw new OptionError("certificates are always verified: give the right ca instead");
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new OptionError("a certificate of ours needs its key, and a key its certificate");
  }
  if (servername !== undefined && (servername === "" || isIP(servername) !== 0)) {
    throw new OptionError("servername must be a host name; an IP address belongs into the address");
  }
  const identity = {
    ...(ca === undefined ? {} : { ca: String(ca) }),
    ...(cert === undefined ? {} : { cert: String(cert) }),
    ...(key === undefined ? {} : { key: String(key) }),
    ...(servername === undefined ? {} : { servername }),
  };
  check("ca", identity.ca, (pem) => new X509Certificate(pem));
  check("cert", identity.cert, (pem) => new X509Certificate(pem));
  check("key", identity.key, () => createSecureContext(identity));
  return identity;
}

function check(name: string, pem: string | undefined, use: (pem: string) => unknown): void {
  if (pem === undefined) return;
  try {
    use(pem);
  } catch (cause) {
    const what =
      name === "key"
        ? "is no PEM key that fits the certificate, not encrypted"
        : "is no PEM certificate";
    throw new OptionError(`the ${name} of tls ${what}`, { cause });
  }
}
