/** A curve and what is new of it, as one. */
import type { CurveView } from '../views/api/run-views.ts';

/** Both of one branch: steps of `more` replace the same ones of `before`; the same value, if nothing is new. */
export function joinCurves(before: CurveView, more: CurveView): CurveView {
  if (hasAll(before.steps, more.steps) && hasAll(before.evals, more.evals)) return before;
  return {
    ...more,
    steps: byStep(before.steps, more.steps),
    evals: byStep(before.evals, more.evals),
    evalRewards: { ...before.evalRewards, ...more.evalRewards },
  };
}

function hasAll<T extends { readonly step: number }>(before: readonly T[], more: readonly T[]): boolean {
  return more.every((item) => {
    const known = before.findLast(({ step }) => step === item.step);
    return known !== undefined && JSON.stringify(known) === JSON.stringify(item);
  });
}

function byStep<T extends { readonly step: number }>(before: readonly T[], more: readonly T[]): T[] {
  const all = new Map([...before, ...more].map((item) => [item.step, item]));
  return [...all.values()].toSorted((a, b) => a.step - b.step);
}
