/** Which sources of servers are tried, in which order, and what is said when one will not do. */
import { OptionError } from "../../lib/errors.js";
import type { ServerSource } from "./server.js";

/** A source that starts servers. */
export type StartingSource = Exclude<ServerSource, "given">;

export interface Choice {
  sources: StartingSource[];
  /** Whether the addresses that were given are used. */
  useGiven: boolean;
}

/** An option wins over the environment, and `FENCEKEEPER_SERVERS` only says how to start those that were not given. */
export function chooseSources(source: ServerSource | undefined, env: NodeJS.ProcessEnv): Choice {
  if (source === "given") return { sources: [], useGiven: true };
  if (source !== undefined) return { sources: [source], useGiven: false };
  const named = env.FENCEKEEPER_SERVERS;
  if (named === undefined || named === "")
    return { sources: ["docker", "programs"], useGiven: true };
  if (named !== "docker" && named !== "programs") {
    throw new OptionError(
      `FENCEKEEPER_SERVERS is docker or programs; it is ${JSON.stringify(named)}`,
    );
  }
  return { sources: [named], useGiven: true };
}

/** Tries one source after the other; the last one's failure is the one that is told. */
export async function startFromFirst<T>(
  sources: readonly StartingSource[],
  options: {
    start: (source: StartingSource) => Promise<T>;
    say: (line: string) => void;
    signal?: AbortSignal | undefined;
  },
): Promise<{ source: StartingSource; started: T }> {
  for (const [index, source] of sources.entries()) {
    try {
      return { source, started: await options.start(source) };
    } catch (error) {
      options.signal?.throwIfAborted();
      const next = sources[index + 1];
      if (next === undefined) throw error;
      const why = error instanceof Error ? error.message : String(error);
      options.say(`not with ${source}: ${why}; trying ${next}`);
    }
  }
  throw new OptionError("source is given, but not every address is");
}
