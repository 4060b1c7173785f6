/** All runs of the store. */
import { useState } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import { useData, useServerInfo } from '../data.ts';
import { navigate, pathTo, useQuery } from '../location.ts';
import { Empty, Shown } from '../parts/small.tsx';
import { VirtualTable } from '../parts/table.tsx';
import { compareColumn, RUN_COLUMNS } from '../run/run-columns.tsx';

const MOST_COMPARED = 6;

export function RunsPage() {
  const loaded = useData<readonly RunRow[]>('runs');
  return (
    <Shown loaded={loaded} what="the runs">
      {(rows) => <Runs rows={rows} />}
    </Shown>
  );
}

function Runs({ rows }: { rows: readonly RunRow[] }) {
  const info = useServerInfo();
  const [query, setQuery] = useQuery();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const filter = query.get('filter') ?? '';
  const shown = rows.filter((row) => matches(row, filter));
  const choose = (run: string): void =>
    setChosen(chosen.includes(run) ? chosen.filter((other) => other !== run) : [...chosen, run]);
  const compare = (): void => navigate(`/compare?${new URLSearchParams({ runs: chosen.join(',') })}`);
  const isTooMany = chosen.length > MOST_COMPARED;
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
        <span class="dim">{describeCount(rows, shown.length)}</span>
        {info !== null && !info.isExport && <a href="#/schedules">Schedules</a>}
        <div class="page-tools">
          <input
            type="search"
            data-search
            placeholder="Filter by name, agent, model, state, host"
            aria-label="Filter runs"
            value={filter}
            onInput={({ currentTarget }) => setQuery({ filter: currentTarget.value })}
          />
          {chosen.length > 0 && (
            <button type="button" class="quiet" onClick={() => setChosen([])}>
              Clear
            </button>
          )}
          <button
            type="button"
            class={chosen.length > 1 ? 'primary' : ''}
            disabled={chosen.length < 2 || isTooMany}
            title={`Choose 2 to ${MOST_COMPARED} runs to compare`}
            onClick={compare}
          >
            Compare{chosen.length > 0 ? ` ${chosen.length}` : ''}
          </button>
        </div>
      </div>
      {isTooMany && <p class="note">At most {MOST_COMPARED} runs can be compared.</p>}
      <VirtualTable
        label="Runs"
        columns={[...RUN_COLUMNS, compareColumn(chosen, choose)]}
        rows={shown}
        keyOf={({ run }) => run}
        linkOf={({ run }) => pathTo('runs', run)}
        isSelected={({ run }) => chosen.includes(run)}
        rowHeight={44}
        empty={<NoRuns hasSome={rows.length > 0} />}
      />
    </>
  );
}

function matches({ run, agent, baseModel, state, host }: RunRow, filter: string): boolean {
  const text = `${run} ${agent} ${baseModel} ${state} ${host ?? ''}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function describeCount(rows: readonly RunRow[], shown: number): string {
  const running = rows.filter(({ state }) => state === 'running').length;
  const all = shown === rows.length ? plural(rows.length, 'run') : `${shown} of ${plural(rows.length, 'run')}`;
  return running === 0 ? all : `${all}, ${running} running`;
}

function NoRuns({ hasSome }: { hasSome: boolean }) {
  if (hasSome) return <Empty title="No run matches the filter" />;
  return (
    <Empty title="This store has no runs yet">
      Start one with <code>temper train AGENT_FILE --base-model MODEL</code>. It appears here by itself.
    </Empty>
  );
}
