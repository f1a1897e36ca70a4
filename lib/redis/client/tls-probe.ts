/**
 * Finds out why no TLS connection to a server of Redis comes about. The client's own error may not tell: a server says
 * that it does not take our certificate after the handshake, and that is lost when we have written to it already. So
 * this one writes nothing.
 */
import { isIP } from "node:net";
import { connect } from "node:tls";
import { SinkTlsError } from "../../errors.js";
import { isTlsFault, wordsOf } from "../../tls/tls-fault.js";
import type { RouteOptions } from "./client-options.js";

/** How long the server may take to object to our certificate, once we have taken its own. */
const OBJECTION_MS = 250;

type Host = RouteOptions["address"]["hosts"][number];

/**
 * The error to throw for a connect that failed; undefined where it has another reason than TLS, or where one of the
 * servers can be talked to.
 */
export async function tlsErrorOf(
  fault: NodeJS.ErrnoException,
  options: RouteOptions,
): Promise<SinkTlsError | undefined> {
  const { hosts, tls } = options.address;
  if (!tls || fault.name === "ReplyError") return undefined;
  if (isTlsFault(fault)) return errorOf(hosts, fault);
  if (fault.code !== undefined && fault.code !== "ECONNRESET" && fault.code !== "EPIPE") {
    return undefined;
  }
  const found = await Promise.all(hosts.map((host) => probe(host, options)));
  const [first] = found;
  return found.includes(undefined) || first === undefined ? undefined : errorOf(hosts, first);
}

function errorOf(hosts: readonly Host[], fault: Error): SinkTlsError {
  const place = hosts.map(({ host, port }) => `${host}:${port}`).join(",");
  return new SinkTlsError(
    `no TLS connection to Redis at ${place} can be made (${wordsOf(fault)}): check that the ca is the one that ` +
      "signed the server's certificate, that the certificate has the host's name and has not expired, and that the " +
      "server takes ours",
  );
}

/** The fault of TLS, if there is one. */
function probe({ host, port }: Host, options: RouteOptions): Promise<Error | undefined> {
  const { tls = {}, connectTimeoutMs } = options;
  const servername = tls.servername ?? (isIP(host) === 0 ? host : undefined);
  return new Promise((resolve) => {
    const socket = connect({
      ...{ host, port, ...tls, rejectUnauthorized: true },
      ...(servername === undefined ? {} : { servername }),
    });
    const end = (fault?: Error) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(fault);
    };
    let timer = setTimeout(end, connectTimeoutMs);
    socket.on("error", (error) => end(isTlsFault(error) ? error : undefined));
    socket.once("close", () => end());
    socket.once("secureConnect", () => {
      clearTimeout(timer);
      timer = setTimeout(end, OBJECTION_MS);
    });
    socket.resume();
  });
}
