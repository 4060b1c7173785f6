/** Whether runs of a store have changed, by what is cheap to read: their state, and how many groups they have played. */
import type { RunState } from '../../../core/contract/contract.ts';
import { childNames } from '../../../store/records/children.ts';
import { isEnded, readState } from '../../../store/records/runs/run-reader.ts';
import { groupsPrefix, RUNS_PREFIX } from '../../../store/layout.ts';
import type { Store } from '../../../store/store.ts';
import { runCacheOf } from '../../../views/runs/run-cache.ts';

export interface RunChange {
  readonly run: string;
  /** Null before the first record of the run's workflow. */
  readonly state: RunState | null;
}

interface Seen {
  readonly mark: string;
  readonly isEnded: boolean;
}

/** Runs that have ended change by a rollback alone: they are looked at in every so many looks. */
const ENDED_EVERY = 30;

export class RunWatch {
  readonly #store: Store;
  #seen = new Map<string, Seen>();
  #looks = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Runs that are new or other than at the last look. The first look finds every run new. */
  async look(): Promise<{ readonly changes: readonly RunChange[]; readonly isGone: boolean }> {
    const looksAtAll = this.#looks++ % ENDED_EVERY === 0;
    const runs = await childNames(this.#store, RUNS_PREFIX);
    const next = new Map<string, Seen>();
    const changes: RunChange[] = [];
    for (const run of runs) {
      const before = this.#seen.get(run);
      if (before?.isEnded === true && !looksAtAll) {
        next.set(run, before);
        continue;
      }
      const { mark, state } = await this.#read(run);
      next.set(run, { mark, isEnded: state !== null && isEnded(state) });
      if (mark !== before?.mark || this.#isOtherThanShown(run, state)) changes.push({ run, state });
    }
    const isGone = [...this.#seen.keys()].some((run) => !next.has(run));
    this.#seen = next;
    return { changes, isGone };
  }

  /** It was told something: the next look reads it, ended or not. */
  forget(run: string): void {
    this.#seen.delete(run);
  }

  /** A state that came and went between two looks may have been shown. */
  #isOtherThanShown(run: string, state: RunState | null): boolean {
    const shown = runCacheOf(this.#store).lastState(run);
    return shown !== undefined && JSON.stringify(shown) !== JSON.stringify(state);
  }

  async #read(run: string): Promise<{ mark: string; state: RunState | null }> {
    const state = await readState(this.#store, run);
    if (state === null || isEnded(state)) return { mark: JSON.stringify(state), state };
    const { branch } = state;
    const steps = state.overlap?.map(({ step }) => step) ?? [state.step + 1];
    const groups = await Promise.all(
      steps.map((step) => childNames(this.#store, groupsPrefix({ run, branch, step })).then(({ length }) => length)),
    );
    return { mark: JSON.stringify([state, groups]), state };
  }
}
