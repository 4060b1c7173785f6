/**
 * How an attempt ends before its agent is done. `mark`: an outage, a wrong policy, a cancellation; nothing the agent
 * does from here on is data. `fail`: the agent broke a rule of the game; that is data. The first word counts, and
 * after it every call fails.
 */
import { setMaxListeners } from 'node:events';

import { TemperError } from '../../core/failures.ts';

export class Ending {
  mark: TemperError | null = null;
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

  markAs(error: TemperError): void {
    if (this.isOver) return;
    this.mark = error;
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
