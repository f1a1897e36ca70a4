/**
 * The demo's timeline for people: when, who, what; a colour for each worker on a terminal.
 */
import type { DemoEvent } from "../demo/story.js";
import type { WorkerEvent } from "../demo/worker-protocol.js";
import { formatDuration as seconds } from "./duration.js";

const COLOURS: Record<string, number> = { A: 36, B: 33, C: 35 };
const RED = 31;
const GREEN = 32;

export class Timeline {
  readonly #startedAtMs = performance.now();
  readonly #coloured: boolean;

  constructor(
    readonly write: (line: string) => void,
    { coloured }: { coloured: boolean },
  ) {
    this.#coloured = coloured;
  }

  /** One line: `  3.2 s  A  claim granted, token 0`. */
  line(who: string, what: string): void {
    const seconds = ((performance.now() - this.#startedAtMs) / 1_000).toFixed(1).padStart(6);
    this.write(`${seconds} s  ${this.#paint(who.padEnd(7), COLOURS[who])}  ${what}`);
  }

  step(who: string, event: WorkerEvent | DemoEvent): void {
    const what = describe(event);
    if (what === undefined) return;
    const refused = event.event === "wrote" && event.outcome === "stale";
    this.line(who, refused ? this.#paint(what, GREEN) : what);
  }

  verdict(asTold: boolean, text: string): void {
    this.write(this.#paint(`verdict: ${text}`, asTold ? GREEN : RED));
  }

  #paint(text: string, colour: number | undefined): string {
    return this.#coloured && colour !== undefined ? `\u001b[${colour}m${text}\u001b[0m` : text;
  }
}

function describe(event: WorkerEvent | DemoEvent): string | undefined {
  switch (event.event) {
    case "queued":
      return "wants the job";
    case "granted":
      return `claim granted, token ${event.sequence}  (${event.token})`;
    case "indexing":
      return undefined;
    case "checked":
      return `indexed ${event.words} words in ${event.files} files; claim checked, about to write`;
    case "stopped":
      return `stops ${event.worker} (SIGSTOP) before its write, past its session of ${seconds(event.timeoutMs)}`;
    case "continued":
      return `continues ${event.worker} (SIGCONT)`;
    case "told":
      return event.reason;
    case "present":
      return `a result is there already, token ${event.sequence}: nothing to do`;
    case "wrote":
      return event.outcome === "stale"
        ? `late write refused: token ${event.sequence} is below the fence ${Number(event.fenceText?.slice(-10))}`
        : `wrote its result, token ${event.sequence}: ${event.outcome}`;
    case "released":
      return event.answer === "lost" ? "leaves; its claim had been lost" : `claim ${event.answer}`;
    case "failed":
      return `failed: ${event.message}`;
  }
}
