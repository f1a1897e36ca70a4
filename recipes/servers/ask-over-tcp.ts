/** One question to a server in plain text over TCP, for ZooKeeper's four-letter words and Redis' inline commands. */
import { connect } from "node:net";

/** Gives all that the server sent until it closed the connection; empty when it did not answer in time or at all. */
export function askOverTcp(options: {
  host: string;
  port: number;
  request: string;
  timeoutMs: number;
}): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ host: options.host, port: options.port });
    const timer = setTimeout(() => socket.destroy(), options.timeoutMs);
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(options.request));
    socket.on("data", (part) => {
      answer += part;
    });
    socket.on("error", () => {}); // not listening yet, or gone: "close" follows and the answer is what came so far
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
}
