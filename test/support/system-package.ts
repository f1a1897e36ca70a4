/**
 * Programs that only a test needs, from the packages of Debian or Ubuntu: installed when they are missing, as root, as
 * those of the servers are.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { fetchPackages, systemFetcher } from "../../recipes/servers/fetch-programs.js";

export interface SystemPackage {
  name: string;
  /** A command that ends well where it is there. */
  check: [command: string, ...args: string[]];
}

/** Why it cannot be used; undefined when it is there. */
export async function missingPackage({ name, check }: SystemPackage): Promise<string | undefined> {
  const [command, ...args] = check;
  const isThere = () =>
    promisify(execFile)(command, args).then(
      () => true,
      () => false, // not there
    );
  if (await isThere()) return undefined;
  const fetcher = await systemFetcher();
  if (process.env.FENCEKEEPER_FETCH === "never") return `FENCEKEEPER_FETCH=never, and no ${name}`;
  if (!fetcher.debian || !fetcher.root) return `no ${name}, and only root can install it on Debian`;
  await fetchPackages([name], { fetcher, say: (line) => console.error(`tests: ${line}`) });
  return (await isThere()) ? undefined : `${name} was installed and does not work`;
}
