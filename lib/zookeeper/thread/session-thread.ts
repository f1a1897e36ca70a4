/**
 * Entry point of the sessions' thread: gives each order to the handle that it is for.
 */
import { parentPort } from "node:worker_threads";
import { HostedHandle } from "./hosted-handle.js";
import type { News, Order } from "./messages.js";

const handles = new Map<number, HostedHandle>();

function tell(news: News): void {
  if (news.is === "ended") handles.delete(news.handle);
  parentPort?.postMessage(news);
}

parentPort?.on("message", (order: Order) => {
  const { handle } = order;
  if (order.do === "open") {
    handles.set(handle, new HostedHandle(order, (news) => tell({ handle, ...news })));
  } else if (handles.has(handle)) {
    handles.get(handle)?.obey(order);
  } else if (order.do === "close") {
    tell({ handle, is: "ended" }); // it ended by itself
  }
});
