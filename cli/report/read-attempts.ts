/** Reads the attempts that a report shows: some steps, some groups of each, and the first games of the evaluations. */
import type { RunState } from '../../core/contract/contract.ts';
import { plural } from '../../core/reports/format.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
import type { StepPlace } from '../../store/layout.ts';
import { listGroups } from '../../store/records/groups/group-files.ts';
import type { Store } from '../../store/store.ts';
import type { GroupView } from '../../views/api/attempt-views.ts';
import type { AttemptSet } from '../../views/api/report-page.ts';
import { viewGroup } from '../../views/attempts/group.ts';
import { readPlayed } from '../../views/attempts/read-played.ts';
import { readRunInStore, type RunInStore } from '../../views/attempts/step-facts.ts';
import { BOUNDS, GROUP_BOUNDS } from '../pages/offline-page.ts';

export interface ReadAttempts {
  readonly sets: readonly AttemptSet[];
  /** Sentences that say what was left out. */
  readonly leftOut: readonly string[];
}

type ReadSet = (store: Store, facts: RunInStore, place: StepPlace) => Promise<AttemptSet | null>;

export async function readAttempts(
  store: Store,
  { run, lineage, step: finished, evals, awaited = null }: RunState,
): Promise<ReadAttempts> {
  // Attempts that wait for a reward are shown, too.
  const last = awaited?.step ?? finished;
  const steps = sampleEvenly(
    Array.from({ length: last }, (_, index) => index + 1),
    BOUNDS.steps,
  );
  const evaluated = sampleEvenly(
    evals.map((evaluation) => evaluation.step),
    BOUNDS.steps,
  );
  const leftOut =
    steps.length < last ? [`This page shows the attempts of ${plural(steps.length, 'step')} out of ${last}.`] : [];
  const places: { name: string; step: number; read: ReadSet }[] = [
    ...evaluated.map((step) => ({ name: `evaluation after step ${step}`, step, read: readEvaluation })),
    ...steps.map((step) => ({ name: `step ${step}`, step, read: readStep })),
  ];
  const facts = await readRunInStore({ store }, run);
  const sets: AttemptSet[] = [];
  let room: number = BOUNDS.total;
  for (const { name, step, read } of places) {
    const set = await read(store, facts, { run, branch: branchOfStep(lineage, step), step });
    const size = set === null ? 0 : JSON.stringify(set).length;
    if (set !== null && size <= room) sets.push(set);
    else
      leftOut.push(
        `The attempts of ${name} are not shown: ${set === null ? 'the store has no copy of them' : 'they are too large'}.`,
      );
    room -= size <= room ? size : 0;
  }
  return { sets: sets.toSorted((a, b) => a.step - b.step || b.kind.localeCompare(a.kind)), leftOut };
}

async function readStep(store: Store, facts: RunInStore, place: StepPlace): Promise<AttemptSet | null> {
  const groups = await listGroups(store, place);
  if (groups.length === 0) return null;
  const shown = groups.slice(0, BOUNDS.groupsPerStep);
  const leftOut = shown.length < groups.length ? `${shown.length} of ${groups.length} groups are shown` : null;
  const views: GroupView[] = [];
  for (const group of shown) {
    const played = await readPlayed(store, { kind: 'group', ...place, group });
    if (played !== null) views.push(await viewGroup(store, facts, played, GROUP_BOUNDS));
  }
  return { kind: 'step', step: place.step, groups: views, leftOut };
}

async function readEvaluation(store: Store, facts: RunInStore, place: StepPlace): Promise<AttemptSet | null> {
  const played = await readPlayed(store, { kind: 'eval', ...place });
  if (played === null) return null;
  const group = await viewGroup(store, facts, played, { ...GROUP_BOUNDS, attempts: BOUNDS.evalGames });
  const all = group.attempts.length + group.leftOut;
  const leftOut = group.leftOut > 0 ? `the first ${group.attempts.length} of ${all} are shown` : null;
  return { kind: 'eval', step: place.step, groups: [{ ...group, title: 'held-out scenarios', leftOut: 0 }], leftOut };
}
