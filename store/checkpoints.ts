/** Checkpoints as forks and schedules look for them: by name, or what a run stands on. */
import type { Checkpoint, RunState } from '../core/contract.ts';
import { decodeJson } from './json.ts';
import { manifestKey, stepsPrefix, type StepPlace } from './layout.ts';
import type { Manifest } from './run-reader.ts';
import { hashBytes } from './sha256.ts';
import type { Store } from './store.ts';

/** With the hashes that its readers verify; null where the step is not committed. */
export async function readCheckpoint(store: Store, { run, branch, step }: StepPlace): Promise<Checkpoint | null> {
  const key = manifestKey({ run, branch, step });
  const bytes = await store.read(key);
  if (bytes === null) return null;
  const { adapter } = decodeJson(bytes, key) as Manifest;
  return { run, branch, step, manifestSha256: hashBytes(bytes), adapterSha256: adapter.sha256 };
}

/**
 * The commit that a run's state tells of. Steps that trained nothing have none, and a branch that has just begun stands
 * on one of the branch before it: hence by the adapter's hash.
 */
export async function readStanding(store: Store, state: RunState): Promise<Checkpoint | null> {
  for (let branch = state.branch; branch >= 0; branch--) {
    for (const step of await listSteps(store, state.run, branch)) {
      const checkpoint = step > state.step ? null : await readCheckpoint(store, { run: state.run, branch, step });
      if (checkpoint?.adapterSha256 === state.adapterSha256) return checkpoint;
    }
  }
  return null;
}

/** Newest first, those in hand included. */
async function listSteps(store: Store, run: string, branch: number): Promise<number[]> {
  const prefix = stepsPrefix(run, branch);
  const steps: number[] = [];
  for await (const key of store.list(prefix)) steps.push(Number(key.slice(prefix.length + 1).replace(/\/$/, '')));
  return steps.filter((step) => Number.isSafeInteger(step)).toSorted((a, b) => b - a);
}
