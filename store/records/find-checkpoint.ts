/** Checkpoints as forks and schedules look for them: by name, or what a run stands on. */
import type { Checkpoint, RunState } from '../../core/contract.ts';
import { childNumbers } from './children.ts';
import { stepsPrefix, type StepPlace } from '../layout.ts';
import { checkpointOf } from './manifest.ts';
import { readCommit } from './run-reader.ts';
import type { Store } from '../store.ts';

/** With the hashes that its readers verify; null where the step is not committed. */
export async function readCheckpoint(store: Store, place: StepPlace): Promise<Checkpoint | null> {
  const commit = await readCommit(store, place);
  return commit && checkpointOf(place.run, commit);
}

/**
 * The commit that a run's state tells of. Steps that trained nothing have none, and a branch that has just begun stands
 * on one of the branch before it: hence by the adapter's hash.
 */
export async function readStanding(store: Store, state: RunState): Promise<Checkpoint | null> {
  for (let branch = state.branch; branch >= 0; branch--) {
    // Newest first, the step in hand included.
    for (const step of (await childNumbers(store, stepsPrefix(state.run, branch))).toReversed()) {
      const checkpoint = step > state.step ? null : await readCheckpoint(store, { run: state.run, branch, step });
      if (checkpoint?.adapterSha256 === state.adapterSha256) return checkpoint;
    }
  }
  return null;
}

/** Of branch 0, where a script's own loop has all of its steps. */
export async function findNewestCheckpoint(
  store: Store,
  run: string,
  notAfterStep: number,
): Promise<Checkpoint | null> {
  for (const step of (await childNumbers(store, stepsPrefix(run, 0))).toReversed()) {
    const checkpoint = step > notAfterStep ? null : await readCheckpoint(store, { run, branch: 0, step });
    if (checkpoint !== null) return checkpoint;
  }
  return null;
}
