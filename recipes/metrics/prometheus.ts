/**
 * Counts what is measured, and writes it in Prometheus' text exposition format, version 0.0.4. Counters and histograms
 * are all that is needed, which is less than the smallest client library brings.
 */
import {
  INSTRUMENTS,
  type Instrument,
  type InstrumentName,
  instruments,
  type LabelsOf,
  prometheusName,
} from "./instruments.js";
import { type MeasureOptions, measure, type Recorder } from "./measure.js";

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** One time series: of a counter its sum, of a histogram also the observations in each bucket, the last one endless. */
interface Series {
  labels: Record<string, string>;
  sum: number;
  buckets: number[];
}

export class PrometheusMetrics implements Recorder {
  readonly #series = new Map<InstrumentName, Map<string, Series>>();
  readonly #stop: () => void;

  /** Counts from now on, until {@link stop}. */
  constructor(options: MeasureOptions = {}) {
    for (const [name, { initial = [] }] of instruments) {
      this.#series.set(name, new Map());
      for (const labels of initial) this.#seriesOf(name, labels);
    }
    this.#stop = measure(this, options);
  }

  record<Name extends InstrumentName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    const series = this.#seriesOf(name, labels);
    series.sum += value;
    const { bounds = [] }: Instrument = INSTRUMENTS[name];
    const above = bounds.findIndex((bound) => value <= bound);
    const index = above < 0 ? bounds.length : above;
    series.buckets[index] = (series.buckets[index] ?? 0) + 1;
  }

  /** All metrics, as a scrape wants them. */
  text(): string {
    return instruments.map(([name, form]) => this.#textOf(name, form)).join("");
  }

  stop(): void {
    this.#stop();
  }

  #seriesOf(name: InstrumentName, labels: Record<string, string>): Series {
    const { bounds = [], labels: names }: Instrument = INSTRUMENTS[name];
    const id = JSON.stringify(names.map((label) => labels[label]));
    const all = this.#series.get(name) ?? new Map<string, Series>();
    const known = all.get(id);
    if (known !== undefined) return known;
    const fresh = { labels, sum: 0, buckets: [...bounds.map(() => 0), 0] };
    all.set(id, fresh);
    return fresh;
  }

  #textOf(name: InstrumentName, { help, kind, bounds = [] }: Instrument): string {
    const full = prometheusName(name);
    const lines = [`# HELP ${full} ${escaped(help)}`, `# TYPE ${full} ${kind}`];
    for (const series of this.#series.get(name)?.values() ?? []) {
      lines.push(
        ...(kind === "counter"
          ? [sample(full, series.labels, series.sum)]
          : histogramLines(full, series, bounds)),
      );
    }
    return `${lines.join("\n")}\n`;
  }
}

function histogramLines(name: string, series: Series, bounds: readonly number[]): string[] {
  const { labels, sum, buckets } = series;
  let count = 0;
  const lines = [...bounds, "+Inf"].map((bound, index) => {
    count += buckets[index] ?? 0;
    return sample(`${name}_bucket`, { ...labels, le: String(bound) }, count);
  });
  return [...lines, sample(`${name}_sum`, labels, sum), sample(`${name}_count`, labels, count)];
}

function sample(name: string, labels: Record<string, string>, value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  );
  return `${name}{${pairs.join(",")}} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
