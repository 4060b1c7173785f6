/** Timeline of a run as lanes; and what was not ordinary work, as a table. */
import { useMemo, useState } from 'preact/hooks';
import { formatDuration, plural } from '../../core/reports/format.ts';
import type { LaneSpan, LanesView, RunView } from '../../views/api/run-views.ts';
import { useSteadyData, useServerInfo } from '../data.ts';
import { pathTo, useQuery, stepPath } from '../location.ts';
import { Chip, Empty, Shown } from '../parts/small.tsx';
import type { TableColumn } from '../parts/table-column.ts';
import { VirtualTable } from '../parts/table.tsx';
import { LaneChart } from './lane-chart.tsx';
import { isOrdinary, periodOf, placeLanes } from './plan-lanes.ts';

/** Steps that are shown at first: the newest. */
const FIRST_STEPS = 20;

export function Lanes({ view: { row } }: { view: RunView }) {
  const [query, setQuery] = useQuery();
  // The step in progress has no number of its own yet.
  const last = row.state === 'completed' ? row.step : row.step + 1;
  const to = numberOf(query.get('to')) ?? last;
  const from = numberOf(query.get('from')) ?? Math.max(1, to - FIRST_STEPS);
  const path = `${pathTo('runs', row.run).slice(1)}/lanes?from=${from}&to=${to}`;
  const loaded = useSteadyData<LanesView>(path);
  const move = (by: number): void => {
    const first = Math.max(1, from + by);
    setQuery({ from: String(first), to: String(first + (to - from)) });
  };
  const field = (name: 'from' | 'to', value: number) => (
    <input
      type="number"
      min="0"
      max={row.steps}
      value={value}
      aria-label={name === 'from' ? 'first step' : 'last step'}
      onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
    />
  );
  return (
    <>
      <div class="toolbar">
        <span class="field">
          Steps {field('from', from)} to {field('to', to)}
        </span>
        <button type="button" disabled={from <= 1} onClick={() => move(from - to - 1)}>
          ← Earlier
        </button>
        <button type="button" disabled={to >= last} onClick={() => move(to - from + 1)}>
          Later →
        </button>
      </div>
      <Shown loaded={loaded} what="the timeline">
        {(lanes) => <Timeline run={row.run} view={lanes} />}
      </Shown>
    </>
  );
}

function numberOf(text: string | null): number | null {
  const value = Number.parseInt(text ?? '', 10);
  return Number.isNaN(value) ? null : value;
}

interface ListedSpan extends LaneSpan {
  readonly lane: string;
}

function Timeline({ run, view }: { run: string; view: LanesView }) {
  const [isAll, setIsAll] = useState(false);
  const temporalUi = useServerInfo()?.temporalUi ?? null;
  const { lanes, period, listed, unusual } = useMemo(() => {
    const now = Date.now();
    const all = view.lanes.flatMap(({ name, spans }) => spans.map((span): ListedSpan => ({ ...span, lane: name })));
    const sorted = all.toSorted((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
    return {
      lanes: placeLanes(view, now),
      period: periodOf(view, now),
      listed: sorted,
      unusual: sorted.filter((span) => !isOrdinary(span)),
    };
  }, [view]);
  if (period === null) return <Empty title="Nothing happened in these steps" />;
  return (
    <>
      <LaneChart lanes={lanes} whole={period} linkOf={(span) => linkOf(run, span)} />
      <p class="note">
        Retries, their reasons and lost workers are in{' '}
        {temporalUi === null ? (
          'Temporal’s UI'
        ) : (
          <a href={temporalUi} target="_blank" rel="noreferrer">
            Temporal’s UI
          </a>
        )}
        .
      </p>
      <div class="section-head">
        <h2>
          {isAll ? 'Everything' : 'Waits, pauses, later tries'}{' '}
          <span class="count">{(isAll ? listed : unusual).length}</span>
        </h2>
        <button type="button" aria-pressed={isAll} onClick={() => setIsAll(!isAll)}>
          Show all {plural(listed.length, 'span')}
        </button>
      </div>
      <VirtualTable
        label={isAll ? 'All spans' : 'Waits, pauses and later tries'}
        columns={COLUMNS}
        rows={isAll ? listed : unusual}
        keyOf={({ lane, label, startedAt, attempt, group }) => `${lane} ${label} ${startedAt} ${attempt} ${group}`}
        linkOf={(span) => linkOf(run, span)}
        rowHeight={30}
        empty={<Empty title="No waits, pauses or later tries in these steps" />}
      />
    </>
  );
}

function linkOf(run: string, { branch, step }: LaneSpan): string | null {
  return step === null || step === 0 ? null : stepPath(run, step, branch);
}

function spanSeconds({ startedAt, endedAt }: LaneSpan): number | null {
  return endedAt === null ? null : (Date.parse(endedAt) - Date.parse(startedAt)) / 1000;
}

const COLUMNS: TableColumn<ListedSpan>[] = [
  {
    key: 'time',
    label: 'Started',
    width: 'minmax(170px, 1fr)',
    value: ({ startedAt }) => startedAt,
    render: ({ startedAt }) => <time dateTime={startedAt}>{startedAt.slice(0, 19).replace('T', ' ')}</time>,
  },
  { key: 'lane', label: 'Lane', value: ({ lane }) => lane, render: ({ lane }) => lane },
  {
    key: 'label',
    label: 'What',
    width: 'minmax(160px, 2fr)',
    value: ({ label }) => label,
    render: ({ label }) => <span title={label}>{label}</span>,
  },
  {
    key: 'step',
    label: 'Step',
    align: 'end',
    width: '64px',
    value: ({ step }) => step,
    render: ({ step }) => step ?? '–',
  },
  {
    key: 'kind',
    label: 'Kind',
    width: '104px',
    value: ({ kind }) => kind,
    render: ({ attempt, kind }) => (
      <Chip kind={attempt > 1 ? 'warn' : ''}>{attempt > 1 ? `attempt ${attempt}` : kind}</Chip>
    ),
  },
  {
    key: 'seconds',
    label: 'Lasted',
    align: 'end',
    value: spanSeconds,
    render: (span) => {
      const seconds = spanSeconds(span);
      return seconds === null ? 'in progress' : formatDuration(seconds);
    },
  },
  { key: 'host', label: 'Host', value: ({ host }) => host, render: ({ host }) => host ?? '–' },
];
