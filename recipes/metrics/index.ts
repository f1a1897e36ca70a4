/**
 * The public entry point `fencekeeper/metrics`: what fencekeeper does, as Prometheus wants it.
 */
export type { MeasureOptions } from "./measure.js";
export { type MetricsServer, type MetricsServerOptions, metricsServer } from "./metrics-server.js";
export { CONTENT_TYPE, PrometheusMetrics } from "./prometheus.js";
