/**
 * A fenced run with a span around it, from asking for the claim to its release; what the handler traces is below it.
 */
import { type Span, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import {
  type FencedRunAnswer,
  type FencedRunOptions,
  fencedRun,
  type Handler,
} from "../fenced-run.js";

export interface TracedRunOptions extends FencedRunOptions {
  /** Default: the global tracer provider's, asked for `fencekeeper`. */
  tracer?: Tracer;
}

/**
 * As `fencedRun`, and takes the same options.
 *
 * @throws what `fencedRun` throws
 */
export function tracedRun(options: TracedRunOptions, handler: Handler): Promise<FencedRunAnswer> {
  const { tracer = trace.getTracer("fencekeeper"), ...runOptions } = options;
  const { job, result } = runOptions;
  const attributes = {
    "fencekeeper.job": job,
    ...(result === undefined ? {} : { "fencekeeper.key": result.key }),
  };
  return tracer.startActiveSpan("fencekeeper run", { attributes }, async (span) => {
    try {
      const answer = await fencedRun(runOptions, (claim) => {
        span.addEvent("granted", { "fencekeeper.token": claim.token.text });
        return handler(claim);
      });
      tellEnd(span, answer);
      return answer;
    } catch (error) {
      span.recordException(error instanceof Error ? error : String(error));
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** A run that was refused or lost did what it should: its outcome says so, and only a fault is an error. */
function tellEnd(span: Span, answer: FencedRunAnswer): void {
  span.setAttribute("fencekeeper.outcome", answer.outcome);
  if ("token" in answer) span.setAttribute("fencekeeper.token", answer.token.text);
  if (answer.outcome === "lost") span.setAttribute("fencekeeper.loss", answer.error.reason);
}
