/**
 * One serial queue for all events of a session: each is told to all its listeners before the next one begins, never
 * from inside the call that caused it, so that flapping connections cannot interleave two recoveries.
 */
export class EventQueue {
  readonly #events: (() => (() => void)[])[] = [];
  #draining = false;

  /** @param listeners who is to be told, asked for when the event's turn has come */
  push(listeners: () => (() => void)[]): void {
    this.#events.push(listeners);
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(() => this.#drain());
  }

  #drain(): void {
    for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
      for (const tell of event()) tellOne(tell);
    }
    this.#draining = false;
  }
}

/** A listener that throws must not keep the others from hearing; its error is nobody's to swallow. */
function tellOne(tell: () => void): void {
  try {
    tell();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
