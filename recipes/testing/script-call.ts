/**
 * One call of a script on a simulated keyspace, and what comes of it.
 */
import type { SimulatedKeyspace } from "./simulated-keyspace.js";

/** A reply of a script: texts of which each character is a byte, and values. */
export type Reply = (string | Buffer)[];

export interface ScriptCall {
  keyspace: SimulatedKeyspace;
  keys: string[];
  /** The arguments as texts of which each character is a byte. */
  values: string[];
  /** One of them as bytes. */
  bytes(index: number): Buffer;
  nowMs: number;
  /** Notes a write that was accepted. */
  accept(write: AcceptedWrite): void;
}

/** A write that was accepted. */
export interface AcceptedWrite {
  key: string;
  tokenText: string;
  /** The value as text, with bytes replaced that are not UTF-8; undefined for a deletion. */
  value: string | undefined;
  revision: number;
}
