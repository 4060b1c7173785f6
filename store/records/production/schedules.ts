/** Schedules' files in the store: the run of each firing, and its final checkpoint. */
import type { z } from 'zod';

import type { Checkpoint, RunConfig } from '../../../core/contract/contract.ts';
import { omitDefaults, SCHEMA_DEFAULTS } from '../../../core/contract/schema-defaults.ts';
import { childNumbers } from '../children.ts';
import { ConclusionFileSchema, FiringFileSchema, readStored, ScheduleFileSchema } from '../file-schemas.ts';
import { encodeJson } from '../../bytes/json.ts';
import { conclusionKey, firingKey, firingsPrefix, scheduleKey } from '../../layout.ts';
import type { Store } from '../../store.ts';

/** Content of `schedules/<name>/schedule.json`: retention reads it without asking Temporal. */
export interface NewSchedule {
  config: RunConfig;
  /** Parent of its first run, as given by `--from`. */
  from: Checkpoint | null;
}

export type ScheduleFile = z.output<typeof ScheduleFileSchema>;

/** Before Temporal has the schedule: from then on it may fire at any moment. */
export async function recordSchedule(store: Store, schedule: string, { config, from }: NewSchedule): Promise<void> {
  await store.replace(
    scheduleKey(schedule),
    encodeJson({ schema: 1, from, config: omitDefaults(config, SCHEMA_DEFAULTS), isDeleted: false }),
  );
}

/** After Temporal has forgotten it. */
export async function recordScheduleDeleted(store: Store, schedule: string): Promise<void> {
  const file = await readStored(store, scheduleKey(schedule), ScheduleFileSchema);
  if (file !== null) await store.replace(scheduleKey(schedule), encodeJson({ ...file, isDeleted: true }));
}

/** `schedules/<name>/<n>.json`. */
export type FiringFile = z.output<typeof FiringFileSchema>;

export interface Firing extends FiringFile {
  number: number;
  /** Null while the run is active, or if it failed. */
  checkpoint: Checkpoint | null;
}

/** In the order of their numbers. */
export async function readFirings(store: Store, schedule: string): Promise<Firing[]> {
  const numbers = await childNumbers(store, firingsPrefix(schedule));
  const firings = await Promise.all(numbers.map((number) => readFiring(store, schedule, number)));
  return firings.filter((firing) => firing !== null);
}

/** Parent of the next firing: the final checkpoint of the last firing that succeeded. */
export function newestOf(firings: readonly Firing[]): Checkpoint | null {
  return firings.findLast(({ checkpoint }) => checkpoint !== null)?.checkpoint ?? null;
}

async function readFiring(store: Store, schedule: string, number: number): Promise<Firing | null> {
  const [firing, conclusion] = await Promise.all([
    readStored(store, firingKey(schedule, number), FiringFileSchema),
    readStored(store, conclusionKey(schedule, number), ConclusionFileSchema),
  ]);
  return firing && { ...firing, number, checkpoint: conclusion?.checkpoint ?? null };
}
