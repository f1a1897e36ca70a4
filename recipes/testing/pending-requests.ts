/**
 * The requests of a simulated client that have not been answered.
 */
import { requestError } from "../../lib/zookeeper/request-error.js";

export interface PendingRequest {
  operation: string;
  path: string;
  reject: (error: Error) => void;
}

export class PendingRequests {
  readonly #pending = new Set<PendingRequest>();
  /** Creates of which it was not known what became of them. */
  unknownCreates = 0;

  get count(): number {
    return this.#pending.size;
  }

  add(request: PendingRequest): void {
    this.#pending.add(request);
  }

  /** Takes a request out; false when it has been failed already. */
  answered(request: PendingRequest): boolean {
    return this.#pending.delete(request);
  }

  /** None of them will be answered any more. */
  fail(code: number): void {
    for (const { reject, operation, path } of [...this.#pending]) {
      if (operation === "create") this.unknownCreates += 1;
      reject(requestError(operation, path, code, "simulated"));
    }
    this.#pending.clear();
  }
}
