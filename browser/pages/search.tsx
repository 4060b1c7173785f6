/** Attempts of a run that match filters; the filters are in the address. */
import { useState } from 'preact/hooks';
import { plural } from '../../core/format.ts';
import type { AttemptsView, IndexProgress } from '../../views/api/attempt-views.ts';
import { useSteadyData } from '../data.ts';
import { pathTo, useQuery } from '../location.ts';
import { Empty, Failed, Loading, Notice } from '../parts/small.tsx';
import { AttemptTable } from '../search/attempt-table.tsx';
import { FilterBar } from '../search/filter-bar.tsx';
import { filtersOf } from '../search/filters.ts';
import { PAGE_ROWS, usePages } from '../search/pages.ts';

export function SearchPage({ run }: { run: string }) {
  const [query] = useQuery();
  const filters = filtersOf(query);
  const base = `${pathTo('runs', run).slice(1)}/attempts?${filters}`;
  const first = useSteadyData<AttemptsView>(`${base}&offset=0&limit=${PAGE_ROWS}`);
  const [range, setRange] = useState<readonly [number, number]>([0, 0]);
  const { rows, excerpts } = usePages(base, first.value, range);
  const view = first.value;
  return (
    <>
      <div class="page-head">
        <h1>Attempts</h1>
        {view !== null && (
          <span class="dim" aria-live="polite">
            {view.total.toLocaleString('en')} {view.total === 1 ? 'matches' : 'match'}
          </span>
        )}
      </div>
      <FilterBar />
      {view !== null && <Progress progress={view.index} />}
      {view?.leftOut !== undefined && (
        <Notice title="This is an export">
          It has the newest attempts only. Left out: {plural(view.leftOut, 'older attempt')}.
        </Notice>
      )}
      {first.state === 'failed' && <Failed what="the attempts" message={first.message} />}
      {view === null && first.state !== 'failed' && <Loading what="attempts" />}
      {view !== null && (
        <AttemptTable
          run={run}
          rows={rows}
          excerpts={excerpts}
          onRange={(from, to) => setRange([from, to])}
          empty={<NoMatches view={view} />}
        />
      )}
    </>
  );
}

function NoMatches({ view: { index } }: { view: AttemptsView }) {
  if (index.known === 0) return <Empty title="No attempts are recorded yet" />;
  return (
    <Empty title="No attempt matches">
      {index.isComplete ? 'Remove a filter to see more.' : 'The index is not complete yet; matches may follow.'}
    </Empty>
  );
}

function Progress({ progress: { indexed, known, isComplete } }: { progress: IndexProgress }) {
  if (isComplete) return null;
  return (
    <Notice title="The index is being made">
      <span class="progress">
        <progress value={indexed} max={Math.max(1, known)} aria-label="Groups in the index" />
        {indexed.toLocaleString('en')} of {known.toLocaleString('en')} groups
      </span>
    </Notice>
  );
}
