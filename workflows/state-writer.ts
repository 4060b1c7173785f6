/** Writes a run's state to the store beside the run's own work: in order, and whatever is cancelled. */
import { CancellationScope, upsertSearchAttributes } from '@temporalio/workflow';

import type { RunState } from '../core/contract/contract.ts';
import { temperAgent, temperAwaited, temperPhase, temperReward, temperRun, temperStep } from './search-attributes.ts';
import type { LaneOrder } from './lane-order.ts';

export class StateWriter {
  /** Overlapping steps take turns with the writes of the loop. */
  turns: LaneOrder | null = null;
  readonly #state: () => RunState;
  #written: Promise<void> = Promise.resolve();
  #writing = false;

  constructor(state: () => RunState) {
    this.#state = state;
  }

  get isWriting(): boolean {
    return this.#writing;
  }

  /** Starts writing; waits only for the writing before it. */
  async write(activity: (state: RunState) => Promise<void>): Promise<void> {
    do await this.#written;
    while (this.#writing);
    const state = this.#state();
    indexRun(state);
    this.#writing = true;
    this.#written = CancellationScope.nonCancellable(() => activity(state)).finally(() => {
      this.#writing = false;
    });
    // Its failure is thrown where it is awaited; until then it is not an unhandled rejection.
    this.#written.catch(() => undefined);
  }

  /** Writes of the loop take their turn if there are turns. A finished step is written although later ones are cancelled. */
  writeInTurn(activity: (state: RunState) => Promise<void>): Promise<void> {
    const { turns } = this;
    if (turns === null) return this.write(activity);
    const isFree = (): boolean => !this.#writing;
    return CancellationScope.nonCancellable(() => turns.take('train', () => this.write(activity), isFree));
  }

  /** The write in progress; it fails as that does. */
  get current(): Promise<void> {
    return this.#written;
  }

  /** Resolves once everything is written. */
  async written(): Promise<void> {
    do await this.#written;
    while (this.#writing);
  }
}

/** Search attributes, once per record: each upsert is an event of the history. */
export function indexRun({ run, agent, step, phase, reward, awaited }: RunState): void {
  upsertSearchAttributes([
    { key: temperRun, value: run },
    { key: temperAgent, value: agent },
    { key: temperStep, value: step },
    { key: temperReward, value: reward },
    { key: temperPhase, value: phase },
    // Servers of runs without rewards from outside need not know it.
    ...(awaited === undefined ? [] : [{ key: temperAwaited, value: awaited?.missing ?? 0 }]),
  ]);
}
