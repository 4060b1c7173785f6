/** Attempts as a table. */
import type { ComponentChildren } from 'preact';
import { formatDuration, formatNumber } from '../../core/reports/format.ts';
import type { AttemptQuery } from '../../views/api/attempt-query.ts';
import type { AttemptRow } from '../../views/api/attempt-views.ts';
import { USE_LABELS } from '../attempt/use-chip.tsx';
import { pathTo, useQuery } from '../location.ts';
import { Chip } from '../parts/small.tsx';
import type { TableColumn, TableSort } from '../parts/table-column.ts';
import { VirtualTable } from '../parts/table.tsx';
import { formatAttemptName } from '../attempt/places.ts';

interface AttemptTableProps {
  readonly run: string;
  readonly rows: readonly (AttemptRow | undefined)[];
  readonly excerpts: Readonly<Record<string, string>>;
  readonly onRange: (from: number, to: number) => void;
  readonly empty: ComponentChildren;
}

/** Columns that the server sorts by. */
const SORTS: Readonly<Record<string, readonly [AttemptQuery['sort'], AttemptQuery['sort']]>> = {
  attempt: ['oldest', 'newest'],
  reward: ['reward', '-reward'],
  tokens: ['tokens', '-tokens'],
  turns: ['turns', '-turns'],
};

/** Whether an agent has tools, these tell. */
const FIRST_ROWS = 100;

export function AttemptTable({ run, rows, excerpts, onRange, empty }: AttemptTableProps) {
  const [query, setQuery] = useQuery();
  const text = query.get('text') ?? '';
  const hasExcerpts = text !== '';
  const hasTools = rows.slice(0, FIRST_ROWS).some((row) => row !== undefined && row.tools.length > 0);
  return (
    <VirtualTable
      label={`Attempts of ${run}`}
      columns={columnsOf(hasExcerpts ? excerpts : null, text, hasTools)}
      rows={rows}
      keyOf={({ id }) => id}
      linkOf={({ id }) => pathTo('runs', run, 'attempts', id)}
      sort={readSort(query.get('sort') ?? 'newest')}
      sortable={Object.keys(SORTS)}
      onSort={({ key, isDescending }) => setQuery({ sort: SORTS[key]?.[isDescending ? 1 : 0] ?? null })}
      onRange={onRange}
      rowHeight={hasExcerpts ? 50 : 32}
      empty={empty}
    />
  );
}

function readSort(sort: string): TableSort | null {
  for (const [key, [ascending, descending]] of Object.entries(SORTS))
    if (sort === ascending || sort === descending) return { key, isDescending: sort === descending };
  return null;
}

function columnsOf(
  excerpts: Readonly<Record<string, string>> | null,
  wanted: string,
  hasTools: boolean,
): TableColumn<AttemptRow>[] {
  return [
    nameColumn(excerpts, wanted),
    { key: 'reward', label: 'Reward', align: 'end', render: ({ reward }) => <b>{formatNumber(reward)}</b> },
    // An excerpt says more.
    ...(excerpts === null ? [ANSWER] : []),
    {
      key: 'scenario',
      label: 'Scenario',
      width: 'minmax(110px, 1.4fr)',
      render: ({ scenario }) => <span title={scenario}>{scenario}</span>,
    },
    {
      key: 'advantage',
      label: 'Advantage',
      align: 'end',
      width: 'minmax(100px, 1fr)',
      render: ({ advantage }) => signed(advantage),
    },
    { key: 'turns', label: 'Turns', align: 'end', width: '72px', render: ({ turns }) => turns },
    { key: 'tokens', label: 'Tokens', align: 'end', render: ({ sampledTokens }) => sampledTokens.toLocaleString('en') },
    {
      key: 'time',
      label: 'Time',
      align: 'end',
      render: ({ seconds }) => (seconds === null ? '–' : formatDuration(seconds)),
    },
    ...(hasTools ? [TOOLS] : []),
    { key: 'outcome', label: 'Outcome', width: 'minmax(170px, 1.2fr)', render: (row) => <Outcome row={row} /> },
  ];
}

/** Narrow in a narrow window, where the reward beside it has to be in sight. */
function nameColumn(excerpts: Readonly<Record<string, string>> | null, wanted: string): TableColumn<AttemptRow> {
  const column = { key: 'attempt', label: 'Attempt' };
  if (excerpts === null)
    return { ...column, width: 'minmax(min(264px, 58vw), 2fr)', render: ({ id }) => formatAttemptName(id) };
  return {
    ...column,
    width: 'minmax(min(240px, 58vw), 6fr)',
    render: ({ id }) => (
      <span class="two-lines">
        <span>{formatAttemptName(id)}</span>
        <small title={excerpts[id]}>
          <Marked text={excerpts[id] ?? ''} wanted={wanted} />
        </small>
      </span>
    ),
  };
}

const ANSWER: TableColumn<AttemptRow> = {
  key: 'answer',
  label: 'Answer',
  width: 'minmax(150px, 3fr)',
  title: 'The last thing that the model said',
  render: ({ answer }) =>
    answer === null ? <span class="dim">–</span> : <bdi title={answer}>{answer === '' ? '(empty)' : answer}</bdi>,
};

const TOOLS: TableColumn<AttemptRow> = {
  key: 'tools',
  label: 'Tools',
  width: 'minmax(110px, 1.2fr)',
  render: ({ tools }) => <span title={tools.join(', ')}>{tools.join(', ') || '–'}</span>,
};

/** The text that was looked for, where it stands in an excerpt. */
function Marked({ text, wanted }: { text: string; wanted: string }) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at === -1) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + wanted.length)}</mark>
      {text.slice(at + wanted.length)}
    </>
  );
}

function signed(value: number | null): string {
  return value !== null && value > 0 ? `+${formatNumber(value)}` : formatNumber(value);
}

function Outcome({ row: { failure, truncated, use } }: { row: AttemptRow }) {
  return (
    <>
      {failure !== null && <Chip kind="bad">{failure}</Chip>}
      {truncated && <Chip kind="warn">truncated</Chip>}
      {failure === null && !truncated && <span class="dim">{USE_LABELS[use]}</span>}
    </>
  );
}
