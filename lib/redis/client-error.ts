/**
 * Reads the errors of the Redis client. It attaches the command with its arguments to them, passwords and values
 * among them, so they are never handed on as they are.
 */

/** A copy that holds the name and the text only, without the password. */
export function plainError(error: unknown, password: string | undefined): Error {
  const message = messageOf(error);
  const copy = new Error(password ? message.replaceAll(password, "***") : message);
  if (error instanceof Error) copy.name = error.name;
  return copy;
}

/** True for an error that the server answered with. */
export function isFromServer(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

/** True when a command was refused because it could not be written at once and may not be queued. */
export function isNeverSent(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Stream isn't writeable");
}

/** The name of the command that failed, in lower case. */
export function commandOf(error: Error): string | undefined {
  const { command } = error as Error & { command?: { name?: string } };
  return command?.name?.toLowerCase();
}

/** A failed connect to several addresses of a host has no text, but a code. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return error.message || code || error.name;
}
