/**
 * The findings at several servers of one Redis Cluster as one table: what is well everywhere once, and what is not with
 * the servers where it is so. Pure.
 */
import type { Finding } from "../finding.js";

export interface ServerFindings {
  /** `host:port`. */
  place: string;
  findings: Finding[];
}

export function acrossServers(servers: readonly ServerFindings[]): Finding[] {
  const [first] = servers;
  if (first === undefined || servers.length === 1) return first?.findings ?? [];
  const placed = servers.flatMap(({ place, findings }) =>
    findings.map((finding) => ({ place, finding })),
  );
  const checks = new Set(placed.map(({ finding }) => finding.check));
  return [...checks].flatMap((check) => {
    const all = placed.filter(({ finding }) => finding.check === check);
    const bad = all.filter(({ finding }) => finding.level !== "well");
    if (bad.length === 0) return wellEverywhere(all.map(({ finding }) => finding));
    const sayings = new Set(bad.map(({ finding }) => saying(finding)));
    return [...sayings].flatMap((said) => {
      const same = bad.filter(({ finding }) => saying(finding) === said);
      const places = [...new Set(same.map(({ place }) => place))];
      const where = places.length === servers.length ? "all servers" : places.join(", ");
      return same.slice(0, 1).map(({ finding }) => ({
        ...finding,
        found: `${finding.found} (${where})`,
      }));
    });
  });
}

const saying = ({ level, found }: Finding) => `${level} ${found}`;

/** The first, and how many say something else that is as well. */
function wellEverywhere(findings: Finding[]): Finding[] {
  const [first] = findings;
  if (first === undefined) return [];
  const others = new Set(findings.map(({ found }) => found)).size - 1;
  const more = others > 0 ? ` (and as well: ${others} more)` : "";
  return [{ ...first, found: first.found + more }];
}
