/** Checkpoints as forks and schedules look for them: by name, or the newest of a branch. */
import type { Checkpoint } from '../core/contract.ts';
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

/** The newest commit of a branch; steps that trained nothing have none. */
export async function readNewestCheckpoint(store: Store, run: string, branch: number): Promise<Checkpoint | null> {
  for (const step of await listSteps(store, run, branch)) {
    const checkpoint = await readCheckpoint(store, { run, branch, step });
    if (checkpoint !== null) return checkpoint;
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
