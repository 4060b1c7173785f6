/** When a run wrote something last, and on which host, as the files beside its groups and commits tell it. */
import { z } from 'zod';
import type { RunState } from '../../core/contract/contract.ts';
import { groupsPrefix, groupTimesKey, manifestTimesKey, type StepPlace } from '../../store/layout.ts';
import { childNames } from '../../store/records/children.ts';
import { ManifestTimesSchema, readStored, TimesFileSchema } from '../../store/records/file-schemas.ts';
import type { Store } from '../../store/store.ts';

export interface ProgressTime {
  /** Milliseconds since 1970; null if no file tells it. */
  readonly atMs: number | null;
  /** Host of the worker that played the newest group. */
  readonly host: string | null;
}

/** Groups of a step whose times are read: the newest ones have the highest numbers. */
const READ_GROUPS = 8;
/** Steps may be played ahead of training. */
const STEPS_AHEAD = 2;

const HostSchema = z.looseObject({ ...TimesFileSchema.shape, host: z.string().optional() });

/** Looks at the last finished step and at those in progress. */
export async function readProgressTime(
  store: Store,
  run: string,
  { branch, step }: Pick<RunState, 'branch' | 'step'>,
): Promise<ProgressTime> {
  const committed = await readCommittedAt(store, { run, branch, step });
  const steps = Array.from({ length: STEPS_AHEAD + 1 }, (_, ahead) => step + STEPS_AHEAD - ahead);
  for (const each of steps.filter((number) => number > 0)) {
    const { atMs, host } = await readGroupsTime(store, { run, branch, step: each });
    if (atMs !== null) return { atMs: Math.max(atMs, committed ?? 0), host };
  }
  return { atMs: committed, host: null };
}

/** Milliseconds since 1970; null if the step has no commit, or its time is not known. */
async function readCommittedAt(store: Store, place: StepPlace): Promise<number | null> {
  const times = await readStored(store, manifestTimesKey(place), ManifestTimesSchema);
  return times === null ? null : Date.parse(times.committedAt);
}

async function readGroupsTime(store: Store, place: StepPlace): Promise<ProgressTime> {
  const names = (await childNames(store, groupsPrefix(place))).filter((name) => name.endsWith('.times.json'));
  const groups = names.map((name) => Number.parseInt(name, 10)).toSorted((a, b) => b - a);
  const files = await Promise.all(
    groups.slice(0, READ_GROUPS).map((group) => readStored(store, groupTimesKey({ ...place, group }), HostSchema)),
  );
  const known = files.flatMap((file) =>
    file?.endedAt === undefined ? [] : [{ endedAt: file.endedAt, host: file.host }],
  );
  const [newest] = known.toSorted((a, b) => b.endedAt - a.endedAt);
  return { atMs: newest?.endedAt ?? null, host: newest?.host ?? null };
}
