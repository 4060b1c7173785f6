/** Wakes runs behind the answers to those who give rewards. */
import type { ProjectPlace } from '../../operations/operation.ts';
import { wakeOverServer } from '../../operations/wake.ts';
import type { Store } from '../../store/store.ts';
import { describeError } from '../command-line/errors.ts';

/** For what nobody waits for: a profile of Temporal that cannot be read, say. */
function sayFailure(error: unknown): void {
  console.error(describeError(error).text);
}

export class Waker {
  readonly #place: ProjectPlace;
  readonly #store: Store;
  /** Signals on their way, by run; another one asked for meanwhile is sent after it. */
  readonly #waking = new Map<string, Promise<unknown>>();
  readonly #again = new Set<string>();

  constructor(place: ProjectPlace, store: Store) {
    this.#place = place;
    this.#store = store;
  }

  wake(run: string): void {
    if (this.#waking.has(run)) return void this.#again.add(run);
    const waking = wakeOverServer(this.#place, this.#store, run)
      .catch(sayFailure)
      .finally(() => {
        this.#waking.delete(run);
        if (this.#again.delete(run)) this.wake(run);
      });
    this.#waking.set(run, waking);
  }

  /** Waits for signals that are on their way. */
  async close(): Promise<void> {
    while (this.#waking.size > 0) await Promise.all(this.#waking.values());
  }
}
