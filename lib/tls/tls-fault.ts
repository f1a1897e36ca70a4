/**
 * Tells faults of TLS, which stay until somebody changes a certificate, from those of the network, which pass. Pure.
 */

/** Network faults have these, or the system call that failed; all others are TLS's. */
const NETWORK_CODES = ["ECONNRESET", "EPIPE", "ETIMEDOUT"];

/** True when an error of a TLS socket is about TLS: a certificate, a name, or an alert of the other side. */
export function isTlsFault(error: NodeJS.ErrnoException): boolean {
  const { code, syscall } = error;
  if (code === undefined || NETWORK_CODES.includes(code)) return false;
  // several addresses of one host, of which none could be connected to
  if (error instanceof AggregateError) return false;
  return syscall === undefined || code === "EPROTO";
}

/** OpenSSL's own messages name places in its source; what they are about is kept apart. */
export function wordsOf(error: Error & { reason?: unknown }): string {
  const words = typeof error.reason === "string" ? error.reason : error.message;
  return words.replace(/[\s:]+$/, "");
}
