/** The environment variable by which processes are found that have left their group, session and parent. */

/** Holds the ids of all runs that a process is part of, outermost first. */
export const MARKER_NAME = "FENCEKEEPER_RUN";

const SEPARATOR = ":";

/** The marker's value for a new run. A run inside another run keeps the outer id, so that both find their own. */
export function markerWith(outer: string | undefined, runId: string): string {
  return outer ? `${outer}${SEPARATOR}${runId}` : runId;
}

/** Tells whether a process with this marker is part of the run. */
export function markerHas(marker: string | undefined, runId: string): boolean {
  return marker?.split(SEPARATOR).includes(runId) ?? false;
}
