/** Curves of the branches that a run left. */
import { useEffect, useState } from 'preact/hooks';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import type { LeftBranch } from '../../views/charts/branch-series.ts';
import { getJson } from '../data.ts';
import { pathTo } from '../location.ts';

/** More would hide each other. */
const MOST_BRANCHES = 3;

/** The newest of them; none as long as they are not there. They never change. */
export function useLeftBranches(view: RunView, curve: CurveView): readonly LeftBranch[] {
  const [left, setLeft] = useState<readonly LeftBranch[]>([]);
  const branches = view.lineage
    .filter(({ run, branch, step, from }) => run === curve.run && branch !== curve.branch && step > (from?.step ?? 0))
    .map(({ branch }) => branch)
    .slice(-MOST_BRANCHES);
  useEffect(() => {
    let isGone = false;
    const read = async (branch: number): Promise<LeftBranch> => {
      const path = `${pathTo('runs', curve.run).slice(1)}/curve?branch=${branch}`;
      const { steps, parts } = await getJson<CurveView>(path);
      const from = parts.find((part) => part.branch === branch)?.fromStep ?? 0;
      return { branch, steps: steps.filter(({ step }) => step >= from) };
    };
    // A branch that cannot be read is not drawn: the lineage links to it, and its page says why.
    const load = async (): Promise<void> => {
      const all = await Promise.allSettled(branches.map(read));
      if (!isGone) setLeft(all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
    };
    void load();
    return () => {
      isGone = true;
    };
  }, [curve.run, branches.join(',')]);
  return left;
}
