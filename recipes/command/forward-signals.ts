/** Passes the signals that our own process gets on to somebody else. */
import type { ForwardedSignal } from "./running-command.js";

const FORWARDED: readonly ForwardedSignal[] = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  // A handler for USR1 also keeps Node from starting its debugger on it.
  "SIGUSR1",
  "SIGUSR2",
];

/**
 * From now on each of INT, TERM, HUP, QUIT, USR1 and USR2 goes to the target instead of ending this process.
 *
 * @returns a function that takes the handlers away again
 */
export function forwardSignals(target: (signal: ForwardedSignal) => void): () => void {
  const handlers = FORWARDED.map((signal) => [signal, () => target(signal)] as const);
  for (const [signal, handler] of handlers) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}
