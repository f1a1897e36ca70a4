/**
 * Hands what is measured to OpenTelemetry. Only its API is used, so the program's own SDK decides what becomes of it,
 * and without one nothing does.
 */
import { type Counter, type Histogram, type Meter, metrics } from "@opentelemetry/api";
import { type InstrumentName, instruments } from "../metrics/instruments.js";
import { type MeasureOptions, measure } from "../metrics/measure.js";

export interface MeterInstrumentsOptions extends MeasureOptions {
  /** Default: the global meter provider's, asked for `fencekeeper`; register yours before. */
  meter?: Meter;
}

/**
 * Makes the instruments and records from now on; gives a function that stops it.
 *
 * @throws OptionError when an option cannot be used
 */
export function meterInstruments(options: MeterInstrumentsOptions = {}): () => void {
  const { meter = metrics.getMeter("fencekeeper") } = options;
  const made = new Map<InstrumentName, Counter | Histogram>();
  for (const [name, { kind, help: description, unit, bounds }] of instruments) {
    const form = { description, unit };
    const instrument =
      kind === "counter"
        ? meter.createCounter(name, form)
        : meter.createHistogram(name, {
            ...form,
            ...(bounds === undefined ? {} : { advice: { explicitBucketBoundaries: [...bounds] } }),
          });
    made.set(name, instrument);
  }
  const record = (name: InstrumentName, labels: Record<string, string>, value: number) => {
    const instrument = made.get(name);
    if (instrument === undefined) return;
    if ("add" in instrument) instrument.add(value, labels);
    else instrument.record(value, labels);
  };
  return measure({ record }, options);
}
