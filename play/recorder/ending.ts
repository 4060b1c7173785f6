/**
 * The end of an attempt before its agent is done. `abort`: an outage, a wrong policy, a cancellation; the attempt is
 * discarded. `failAs`: the agent broke a rule of the game, which is data. The first of them counts; then every call fails.
 */
import { setMaxListeners } from 'node:events';

import { TemperError } from '../../core/contract/failures.ts';

export class Ending {
  abortReason: TemperError | null = null;
  failure: TemperError | null = null;
  readonly #controller = new AbortController();

  constructor() {
    // One for each call under way, as many as the agent likes.
    setMaxListeners(0, this.#controller.signal);
  }

  /** Aborted once no further call will be answered. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#controller.signal.aborted;
  }

  abort(error: TemperError): void {
    if (this.isOver) return;
    this.abortReason = error;
    this.#controller.abort(error);
  }

  failAs(message: string): void {
    if (this.isOver) return;
    this.failure = new TemperError('AgentFailed', message);
    this.#controller.abort(this.failure);
  }

  /** The agent is done: calls it did not wait for are dropped. */
  close(): void {
    if (!this.isOver) this.#controller.abort(new TemperError('AgentFailed', 'the attempt is over'));
  }

  check(): void {
    this.#controller.signal.throwIfAborted();
  }
}
