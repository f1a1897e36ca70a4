/**
 * Every metric of fencekeeper: its name, its labels and what it says. Prometheus and OpenTelemetry, the README and the
 * dashboard all go by this list.
 */

interface InstrumentForm {
  kind: "counter" | "histogram";
  help: string;
  labels: readonly string[];
  /** The unit in OpenTelemetry's words: `s`, or what is counted, in braces. */
  unit: string;
  /** Upper ends of a histogram's buckets. */
  bounds?: readonly number[];
  /** Label values that are there from the start, at 0, so that the first increase is seen as one. */
  initial?: readonly Record<string, string>[];
}

const CALL_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_BOUNDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];
const HELD_BOUNDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];

const each = (label: string, values: readonly string[]) =>
  values.map((value) => ({ [label]: value }));

export const INSTRUMENTS = {
  "fencekeeper.sink.calls": {
    kind: "counter",
    help: "Calls of the sink by what they do and how they ended.",
    labels: ["operation", "outcome"],
    unit: "{call}",
  },
  "fencekeeper.sink.call.duration": {
    kind: "histogram",
    help: "Time of a call of the sink, all retries included.",
    labels: ["operation"],
    unit: "s",
    bounds: CALL_BOUNDS,
  },
  "fencekeeper.sink.errors": {
    kind: "counter",
    help: "Calls of the sink that threw, by the code of the error.",
    labels: ["operation", "code"],
    unit: "{error}",
  },
  "fencekeeper.stale.writes": {
    kind: "counter",
    help: "Writes with a token below the fence: refused, or only observed where the policy says so.",
    labels: ["key_prefix", "operation", "effect"],
    unit: "{write}",
  },
  "fencekeeper.unknown.outcomes": {
    kind: "counter",
    help: "Writes whose reply was lost until their deadline: they may have happened.",
    labels: ["key_prefix", "operation"],
    unit: "{write}",
  },
  "fencekeeper.fence.losses": {
    kind: "counter",
    help: "Fences of held claims that the server had lost, and that were raised again.",
    labels: ["key_prefix"],
    unit: "{fence}",
  },
  "fencekeeper.claims": {
    kind: "counter",
    help: "Claims that were asked for: granted, busy (somebody else held it for as long as we waited) or failed.",
    labels: ["job_prefix", "outcome"],
    unit: "{claim}",
  },
  "fencekeeper.claims.lost": {
    kind: "counter",
    help: "Claims that were lost while they were held, by reason.",
    labels: ["reason"],
    unit: "{claim}",
    initial: each("reason", ["expired", "deleted", "deadline", "suspended", "closed"]),
  },
  "fencekeeper.claim.wait": {
    kind: "histogram",
    help: "Time from asking for a claim to the answer.",
    labels: ["outcome"],
    unit: "s",
    bounds: WAIT_BOUNDS,
  },
  "fencekeeper.claim.held": {
    kind: "histogram",
    help: "Time for which a claim was held, until it was released or lost.",
    labels: ["ending"],
    unit: "s",
    bounds: HELD_BOUNDS,
    initial: each("ending", ["released", "lost"]),
  },
  "fencekeeper.session.changes": {
    kind: "counter",
    help: "Changes of a ZooKeeper session to a state.",
    labels: ["state"],
    unit: "{change}",
    initial: each("state", ["CONNECTED", "SUSPENDED", "LOST", "CLOSED"]),
  },
} as const satisfies Record<string, InstrumentForm>;

export type InstrumentName = keyof typeof INSTRUMENTS;
export type Instrument = InstrumentForm;

/** The labels of one instrument, each with its value. */
export type LabelsOf<Name extends InstrumentName> = Record<
  (typeof INSTRUMENTS)[Name]["labels"][number],
  string
>;

export const instruments = Object.entries(INSTRUMENTS) as [InstrumentName, Instrument][];

/** The name in Prometheus, which is also what OpenTelemetry's exporters make of ours. */
export function prometheusName(name: InstrumentName): string {
  const { kind, unit }: Instrument = INSTRUMENTS[name];
  return [name.replaceAll(".", "_"), unit === "s" && "seconds", kind === "counter" && "total"]
    .filter(Boolean)
    .join("_");
}
