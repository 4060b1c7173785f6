/** The steps and evaluations whose attempts stand on a run's overview, and in every export of the run. Pure. */
import type { RunState } from '../../core/contract/contract.ts';
import { branchOfStep } from '../../core/names/lineage.ts';
import { sampleEvenly } from '../../core/numbers/statistics.ts';
import type { CurveView } from '../api/run-views.ts';

export interface AttemptSet {
  readonly kind: 'eval' | 'step';
  readonly branch: number;
  readonly step: number;
}

/** Of each kind: the first, the last, and as many between. */
const SHOWN = 8;
/** Groups of a step that stand side by side. */
export const GROUPS_OF_STEP = 6;

/** In the order of steps; an evaluation comes after its step. A step that waits for rewards is one of them. */
export function planAttemptSets(
  { steps, evals }: Pick<CurveView, 'steps' | 'evals'>,
  state: Pick<RunState, 'lineage' | 'awaited'> | null,
): AttemptSet[] {
  // A supervised step plays none.
  const finished = steps.filter(({ examples }) => examples === undefined).map(({ step }) => step);
  const awaited = state?.awaited?.step ?? 0;
  const played = awaited > (finished.at(-1) ?? 0) ? [...finished, awaited] : finished;
  const setsOf = (kind: AttemptSet['kind'], numbers: readonly number[]): AttemptSet[] =>
    sampleEvenly(numbers, SHOWN).map((step) => ({ kind, step, branch: branchOfStep(state?.lineage ?? [], step) }));
  const sets = [
    ...setsOf('step', played),
    ...setsOf(
      'eval',
      evals.map(({ step }) => step),
    ),
  ];
  return sets.toSorted((one, other) => one.step - other.step);
}
