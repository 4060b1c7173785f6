import { requireCheckpointName } from '../core/names/policy-name.ts';
import { findCheckpoint } from '../store/records/runs/find-checkpoint.ts';
import { requireRun } from '../store/records/runs/run-reader.ts';
import type { CheckpointRow } from '../views/api/run-views.ts';
import { viewCheckpoints } from '../views/runs/checkpoints.ts';
import type { Place } from './operation.ts';

/** All checkpoints of a run, newest first, or the named one. */
export async function findCheckpoints(place: Place, text: string): Promise<CheckpointRow[]> {
  const store = await place.store();
  const name = requireCheckpointName(text);
  await requireRun(store, name.run);
  const named = text === name.run ? null : await findCheckpoint(store, name);
  const { run } = named ?? name;
  const rows = await viewCheckpoints({ store, now: Date.now }, run);
  return rows.filter(({ branch, step }) => named === null || (branch === named.branch && step === named.step));
}
