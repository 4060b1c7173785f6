/** Head of all pages of a run: its state in a line, and the way to its pages. */
import { formatNumber } from '../../core/reports/format.ts';
import { pathTo } from '../location.ts';
import type { RunRow } from '../../views/api/run-views.ts';
import { ActionMenu } from './action-group.tsx';
import { useRunRow } from '../data.ts';
import { Chip, Ago } from './small.tsx';

export function RunBar({ run, page }: { run: string; page: string | null }) {
  const row = useRunRow(run);
  return (
    <section class="run-bar" aria-label={`Run ${run}`}>
      <div class="run-line">
        {page === null ? (
          <h1>{run}</h1>
        ) : (
          <a class="run-name" href={`#${pathTo('runs', run)}`}>
            {run}
          </a>
        )}
        {row !== null && <RunLine row={row} />}
        {row !== null && <ActionMenu run={row} />}
      </div>
      <nav class="run-nav" aria-label={`Pages of ${run}`}>
        {PAGES.map(({ label, key }) => (
          <a
            key={label}
            href={`#${key === null ? pathTo('runs', run) : pathTo('runs', run, key)}`}
            aria-current={isWithin(page, key) ? 'page' : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
    </section>
  );
}

const PAGES = [
  { label: 'Overview', key: null },
  { label: 'Attempts', key: 'attempts' },
  { label: 'Checkpoints', key: 'checkpoints' },
  { label: 'Chat', key: 'chat' },
] as const;

/** Steps and groups belong to the overview, from where one gets there. */
function isWithin(page: string | null, key: string | null): boolean {
  return page === key || (key === null && (page === 'steps' || page === 'groups'));
}

function RunLine({ row }: { row: RunRow }) {
  return (
    <>
      <span aria-live="polite">
        <Chip kind={row.state}>{row.state}</Chip>
      </span>
      <span class="dim">
        step {row.step} of {row.steps}
      </span>
      <span class="dim">reward {formatNumber(row.reward)}</span>
      {row.waitingFor !== null && (
        <span class="waiting">
          waiting for {row.waitingFor}
          {row.waitingSince !== null && (
            <>
              {' '}
              since <Ago at={row.waitingSince} since />
            </>
          )}
          {row.awaited > 0 && (
            <>
              ; give them in <code>temper review</code>
            </>
          )}
        </span>
      )}
    </>
  );
}
