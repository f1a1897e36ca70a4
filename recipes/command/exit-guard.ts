/**
 * Ends the commands that still run when our own process ends by `process.exit` or an uncaught exception, so that no
 * work goes on without its claim. Nothing can be done here about SIGKILL; there the fence decides.
 */

const guards = new Set<() => void>();

/** Registers what is to be done at the exit of this process, and gives the function that takes it back. */
export function guardExit(endNow: () => void): () => void {
  // One listener however many commands run.
  if (guards.size === 0) process.on("exit", endAll);
  guards.add(endNow);
  return () => {
    if (guards.delete(endNow) && guards.size === 0) process.off("exit", endAll);
  };
}

function endAll(): void {
  for (const endNow of guards) endNow();
}
