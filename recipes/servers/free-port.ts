/** Finds a port of the loopback interface that nobody uses. */
import { once } from "node:events";
import { createServer } from "node:net";

/** It is free now; another process may take it before ours does, so who uses it has to be ready to try again. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a port has no number");
  return address.port;
}
