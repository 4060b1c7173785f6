/** The curve of a run, extended by what is new instead of fetched again. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { CurveView } from '../views/api/run-views.ts';
import { getJson, type Loaded } from './data.ts';
import { joinCurves } from './join-curves.ts';
import { useRunEvents } from './live.ts';
import { pathTo } from './location.ts';

/** Those that were seen, so that a page that is opened again shows it at once. */
const curves = new Map<string, CurveView>();
const MOST_CURVES = 8;

function keep(path: string, curve: CurveView): CurveView {
  curves.delete(path);
  curves.set(path, curve);
  if (curves.size > MOST_CURVES) curves.delete(curves.keys().next().value!);
  return curve;
}

const curvePath = (run: string): string => `${pathTo('runs', run).slice(1)}/curve`;

export function useCurve(run: string): Loaded<CurveView> {
  const path = curvePath(run);
  const [loaded, setLoaded] = useState<Loaded<CurveView>>(() => {
    const value = curves.get(path) ?? null;
    return { state: 'loading', value };
  });
  const load = useCallback(
    async (isWhole: boolean): Promise<void> => {
      const before = curves.get(path) ?? null;
      try {
        setLoaded({ state: 'ready', value: keep(path, await fetchCurve(path, isWhole ? null : before)) });
      } catch (error) {
        setLoaded({ state: 'failed', value: before, message: (error as Error).message });
      }
    },
    [path],
  );
  useEffect(() => void load(false), [load]);
  useRunEvents(
    run,
    // The intervals of all evaluations come with the index.
    useCallback((event) => void load(event === 'indexed'), [load]),
  );
  return loaded;
}

async function fetchCurve(path: string, before: CurveView | null): Promise<CurveView> {
  const last = before?.steps.at(-1)?.step ?? 0;
  if (before === null || last === 0) return getJson(path);
  // The last step again: its evaluation comes after it.
  const more = await getJson<CurveView>(`${path}?after=${last - 1}`);
  return more.branch === before.branch ? joinCurves(before, more) : getJson(path);
}
