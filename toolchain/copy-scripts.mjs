// Puts the Lua scripts beside the compiled code that loads them: the TypeScript compiler copies only its own files.
import { cpSync } from "node:fs";

cpSync(
  new URL("../lib/redis/scripts/", import.meta.url),
  new URL("../dist/lib/redis/scripts/", import.meta.url),
  { recursive: true },
);
