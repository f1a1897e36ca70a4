/**
 * A simulated sink as one process sees it: the production sink on a way to a simulated store.
 */
import { scriptedSink } from "../../lib/redis/scripted-sink.js";
import type { Sink } from "../../lib/sink.js";
import { SimulatedSinkConnection, type SimulatedWay } from "./simulated-sink-connection.js";

const CALL_TIMEOUT_MS = 3_000;

export function simulatedSink(way: SimulatedWay): Sink {
  return scriptedSink({
    clock: way.process.main,
    timeoutMs: CALL_TIMEOUT_MS,
    connect: () => new SimulatedSinkConnection(way),
  });
}
