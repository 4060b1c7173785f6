/** The attempts that the overview of a run asks for, read from the store at once: for a command that writes one page and ends. */
import pLimit from 'p-limit';
import { branchOfStep } from '../../core/names/lineage.ts';
import type { RunState } from '../../core/contract/contract.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { filterRows } from '../api/attempt-query.ts';
import type { AttemptRow } from '../api/attempt-views.ts';
import { readPlayed } from '../attempts/read-played.ts';
import type { AttemptIndex } from '../context/context.ts';
import { attemptRows } from '../rows/attempt-row.ts';
import { readNewestAttempts } from '../runs/stored-advisories.ts';

const READ_AT_ONCE = 8;
const NOTHING_LEFT = { indexed: 0, known: 0, isComplete: true };

/** Knows the newest attempts, and those of all evaluations. */
export function openPageIndex(store: Store): AttemptIndex {
  const known = new Map<string, Promise<readonly AttemptRow[]>>();
  return {
    search: async (run, query) => {
      const reading = known.get(run) ?? readRows(store, run);
      known.set(run, reading);
      const rows = await reading;
      return filterRows({ total: rows.length, rows, excerpts: {}, index: NOTHING_LEFT }, query);
    },
    progress: () => NOTHING_LEFT,
    update: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

async function readRows(store: Store, run: string): Promise<readonly AttemptRow[]> {
  const { state } = await requireRun(store, run);
  if (state === null) return [];
  const limit = pLimit(READ_AT_ONCE);
  const evaluations = state.evals.map(({ step }) => limit(() => readEvaluation(store, state, step)));
  return [...(await readNewestAttempts(store, state)), ...(await Promise.all(evaluations)).flat()];
}

async function readEvaluation(store: Store, { run, lineage }: RunState, step: number): Promise<AttemptRow[]> {
  const place = { run, branch: branchOfStep(lineage, step), step };
  const played = await readPlayed(store, { kind: 'eval', ...place }, 'none');
  if (played === null) return [];
  const { rollouts, judged, times } = played;
  return attemptRows({ place, group: null, rollouts, judged, times, use: 'eval' });
}
