/**
 * What a tunnel's thread is given, and what it tells.
 */

import type { TlsIdentity } from "../../tls/tls-options.js";
import type { Server } from "../connect-string.js";

export interface TunnelPlan {
  servers: Server[];
  identity: TlsIdentity;
  /** How long a TLS connection may take to be made, in milliseconds. */
  handshakeMs: number;
}

export type TunnelNews =
  /** A port of 127.0.0.1 for each server. `guarded`: connections of other processes are refused. */
  | { is: "listening"; ports: number[]; guarded: boolean }
  /** The server of this number has answered through the tunnel. */
  | { is: "up"; server: number }
  /** A connection to it failed before it answered. `untrusted`: TLS itself failed, and trying again will not help. */
  | { is: "down"; server: number; message: string; untrusted: boolean };
