/**
 * Asks a ZooKeeper server one of its four-letter words, and reads the numbers in the answer.
 */
import { connect } from "node:net";

/** @param address `host:port` */
export function fourLetterWord(address: string, word: string): Promise<string> {
  const [host = "", port = ""] = address.split(":");
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(Number(port), host, () => socket.end(word));
    socket.setEncoding("utf8");
    socket.on("data", (data) => {
      answer += data;
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}

/** How many packets the server has received since it started, by its own count. */
export async function receivedPackets(address: string): Promise<number> {
  const answer = await fourLetterWord(address, "srvr");
  const count = /^Received: (\d+)$/m.exec(answer)?.[1];
  if (count === undefined) throw new Error(`no count of received packets in: ${answer}`);
  return Number(count);
}
