/** stub */
export { openRedisSink as openUnfencedSink } from "./redis-sink.js";
