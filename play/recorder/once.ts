/** Side effects that must not happen twice: run once per attempt and name, whatever is repeated. */
import { setTimeout as sleep } from 'node:timers/promises';

import { TemperError } from '../../core/contract/failures.ts';
import type { Ending } from './ending.ts';
import type { Journal } from './journal.ts';

const GRACE_MS = 2000;

export class OnceValues {
  readonly #running = new Map<string, Promise<unknown>>();
  readonly #journal: Journal;
  readonly #attempt: number;
  readonly #ending: Ending;

  constructor(journal: Journal, attempt: number, ending: Ending) {
    this.#journal = journal;
    this.#attempt = attempt;
    this.#ending = ending;
  }

  /** The value goes through JSON, so that the first time is like every other. One that failed may be tried again. */
  once<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const running = this.#running.get(name) ?? this.#run(name, fn);
    this.#running.set(name, running);
    running.catch(() => this.#running.delete(name));
    return running as Promise<T>;
  }

  /** Waits a moment for what is under way: a side effect that is not recorded would happen again. */
  async settle(): Promise<void> {
    if (this.#running.size === 0) return;
    const late = sleep(GRACE_MS, undefined, { ref: false });
    await Promise.race([Promise.allSettled(this.#running.values()), late]);
  }

  async #run(name: string, fn: () => unknown): Promise<unknown> {
    this.#ending.check();
    if (this.#journal.hasValue(this.#attempt, name)) return this.#journal.value(this.#attempt, name);
    const json = JSON.stringify(await fn()) ?? 'null';
    this.#record(name, json);
    return JSON.parse(json) as unknown;
  }

  /** Even where the attempt has ended meanwhile: it happened. */
  #record(name: string, json: string): void {
    try {
      this.#journal.recordValue(this.#attempt, name, json);
    } catch (error) {
      if (error instanceof TemperError) this.#ending.abort(error);
      throw error;
    }
  }
}
