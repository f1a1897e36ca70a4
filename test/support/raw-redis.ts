/**
 * Sends one command to a Redis past our own client, as strangers do, and gives the reply as it came.
 */
import { connect } from "node:net";
import { inject } from "vitest";

export const rawRedis = (...words: string[]) => rawRedisAt(inject("redis"), ...words);

export function rawRedisAt(url: string, ...words: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let reply = "";
    const socket = connect(Number(port), hostname, () => {
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      socket.write(`*${words.length}\r\n${parts.join("")}*1\r\n$4\r\nQUIT\r\n`);
    });
    socket.setEncoding("utf8");
    socket.on("data", (data) => {
      reply += data;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(reply.replace(/\+OK\r\n$/, "")));
  });
}
