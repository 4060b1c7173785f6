/** Attempts of a run that match filters; the filters are in the address. */
import { useState, useEffect, useMemo, useRef } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { AttemptsView, IndexProgress, AttemptRow } from '../../views/api/attempt-views.ts';
import { useSteadyData, getJson } from '../data.ts';
import { pathTo, useQuery } from '../location.ts';
import { Empty, Failed, Loading, Notice } from '../parts/small.tsx';
import { AttemptTable } from '../search/attempt-table.tsx';
import { FilterBar } from '../search/filter-bar.tsx';
import { filtersOf } from '../search/filters.ts';

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
          It has some of the attempts only. Left out: {plural(view.leftOut, 'attempt')}.
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

/** Rows of a search, loaded as they come in sight. */
const PAGE_ROWS = 200;
/** A table of more rows would be too tall for a browser. */
const MOST_ROWS = 300_000;

interface Pages {
  readonly rows: readonly (AttemptRow | undefined)[];
  readonly excerpts: Readonly<Record<string, string>>;
}

/** `first` is the first page; the others are fetched when `range` reaches them. */
function usePages(base: string, first: AttemptsView | null, range: readonly [number, number]): Pages {
  const pages = useRef(new Map<number, AttemptsView | null>());
  const [version, setVersion] = useState(0);
  // Another search, or a run that grew: pages of before do not fit.
  const key = `${base} ${first?.total}`;
  const known = useRef(key);
  if (known.current !== key) {
    known.current = key;
    pages.current = new Map();
  }
  if (first !== null) pages.current.set(0, first);
  useEffect(() => {
    const load = async (page: number): Promise<void> => {
      pages.current.set(page, null);
      const of = pages.current;
      try {
        of.set(page, await getJson<AttemptsView>(`${base}&offset=${page * PAGE_ROWS}&limit=${PAGE_ROWS}`));
      } catch {
        // Asked again when it comes in sight again; the first page says what is wrong.
        of.delete(page);
      }
      setVersion((before) => before + 1);
    };
    const last = Math.floor(Math.min(range[1], (first?.total ?? 1) - 1) / PAGE_ROWS);
    for (let page = Math.floor(range[0] / PAGE_ROWS); page <= last; page++)
      if (!pages.current.has(page)) void load(page);
  }, [key, range[0], range[1]]);
  return useMemo(() => joinPages(pages.current, first), [key, version, first]);
}

function joinPages(pages: ReadonlyMap<number, AttemptsView | null>, first: AttemptsView | null): Pages {
  const rows = Array.from<AttemptRow | undefined>({ length: Math.min(first?.total ?? 0, MOST_ROWS) });
  const excerpts: Record<string, string> = {};
  for (const [page, view] of pages) {
    view?.rows.forEach((row, at) => {
      if (page * PAGE_ROWS + at < rows.length) rows[page * PAGE_ROWS + at] = row;
    });
    Object.assign(excerpts, view?.excerpts);
  }
  return { rows, excerpts };
}
