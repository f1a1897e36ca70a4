/**
 * The public entry point `fencekeeper/opentelemetry`. It needs the package `@opentelemetry/api`.
 */
export { type MeterInstrumentsOptions, meterInstruments } from "./instruments.js";
export { type TracedRunOptions, tracedRun } from "./traced-run.js";
