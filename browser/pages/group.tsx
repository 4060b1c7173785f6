/** Attempts of one scenario side by side, their differences, numbers, and what the judge said. */
import { useState } from 'preact/hooks';
import { parseGroupId } from '../../core/names/attempt-id.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import type { AttemptView, GroupView } from '../../views/api/attempt-views.ts';
import { RewardBars } from '../attempt/attempt-card.tsx';
import { ConversationDiff } from '../attempt/diff.tsx';
import { Judge } from '../attempt/judge.tsx';
import { LongText } from '../attempt/message.tsx';
import { RewardTable } from '../attempt/reward-table.tsx';
import { SideBySide } from '../attempt/side-by-side.tsx';
import { UseChip } from '../attempt/use-chip.tsx';
import { useData } from '../data.ts';
import { pathTo, useQuery, hrefTo, stepPath } from '../location.ts';
import { Shown } from '../parts/small.tsx';
import { Tabs, type Tab } from '../parts/tabs.tsx';
import { Neighbours } from './neighbours.tsx';

export function GroupPage({ run, id }: { run: string; id: string }) {
  const loaded = useData<GroupView>(`runs/${encodeURIComponent(run)}/groups/${encodeURIComponent(id)}`);
  return (
    <Shown loaded={loaded} what={`group ${id}`}>
      {(view) => <Group view={view} />}
    </Shown>
  );
}

function Group({ view }: { view: GroupView }) {
  const { run, id, row, attempts, neighbours } = view;
  const [query, setQuery] = useQuery();
  const place = parseGroupId(id);
  const to = (other: string | null): string | null => (other === null ? null : pathTo('runs', run, 'groups', other));
  const tabs = tabsOf(view, query, setQuery);
  return (
    <>
      <header class="masthead">
        <h1>{place?.group === null ? `Evaluation after step ${place.step}` : `Group ${id}`}</h1>
        {row !== null && <UseChip use={row.use} />}
        {place !== null && place.group !== null && (
          <a href={`#${stepPath(run, place.step, place.branch)}`}>step {place.step}</a>
        )}
        <Neighbours what="group" previous={to(neighbours.previous)} next={to(neighbours.next)} />
      </header>
      <div class="group-summary">
        <RewardBars attempts={attempts} />
        <p>
          <bdi class="scenario">{view.scenario}</bdi>
          <span class="note">{groupFacts(view).join(' · ')}</span>
        </p>
      </div>
      <Tabs
        label="Group"
        tabs={tabs}
        selected={query.get('tab') ?? 'attempts'}
        onSelect={(tab) => setQuery({ tab: tab === 'attempts' ? null : tab })}
      />
    </>
  );
}

const isEvaluation = ({ id }: GroupView): boolean => parseGroupId(id)?.group === null;

function groupFacts(view: GroupView): string[] {
  const { row, attempts, leftOut, comparisons, judge } = view;
  return [
    plural(attempts.length + leftOut, 'attempt'),
    isEvaluation(view) ? 'sorted by reward, lowest first' : null,
    leftOut > 0 ? `${attempts.length} are shown` : null,
    row === null ? null : `mean reward ${formatNumber(row.mean)}, deviation ${formatNumber(row.deviation)}`,
    row === null || row.failed === 0 ? null : `${row.failed} failed`,
    judge === null ? null : `judged by ${judge.judge}`,
    comparisons === 0 ? null : plural(comparisons, 'comparison by reviewers'),
  ].filter((fact) => fact !== null);
}

function tabsOf(view: GroupView, query: URLSearchParams, setQuery: ReturnType<typeof useQuery>[1]): Tab[] {
  const { run, attempts, judge, scenarioValue } = view;
  const hrefOf = ({ row }: AttemptView): string => hrefTo('runs', run, 'attempts', row.id);
  const shown = query.get('show')?.split(',') ?? null;
  const side: Tab = {
    key: 'attempts',
    label: 'Side by side',
    count: attempts.length,
    content: () => (
      <SideBySide
        attempts={attempts}
        shown={shown}
        onShow={(ids) => setQuery({ show: ids === null ? null : ids.join(',') })}
        hrefOf={hrefOf}
        beforeHrefOf={({ row }) => `${hrefTo('runs', run, 'groups', view.id)}?tab=before&scenario=${row.id}`}
      />
    ),
  };
  const table: Tab = {
    key: 'rewards',
    label: 'Rewards and metrics',
    content: () => <RewardTable attempts={attempts} hrefOf={hrefOf} />,
  };
  const diff: Tab = { key: 'diff', label: 'Compare two', content: () => <Compare attempts={attempts} /> };
  const judged: Tab = {
    key: 'judge',
    label: 'Judge',
    content: () => judge !== null && <Judge judge={judge} titles={attempts.map(({ title }) => title)} />,
  };
  const scenario: Tab = {
    key: 'scenario',
    label: 'Scenario',
    content: () => (
      <div class="card padded">
        <LongText text={JSON.stringify(scenarioValue, null, 2)} />
      </div>
    ),
  };
  return [
    side,
    table,
    ...beforeTab(view, query, setQuery),
    ...(attempts.length > 1 && !isEvaluation(view) ? [diff] : []),
    ...(judge === null ? [] : [judged]),
    ...(scenarioValue === null || scenarioValue === undefined ? [] : [scenario]),
  ];
}

/** None in groups, and in the evaluation before training itself. */
function beforeTab(
  { run, attempts }: GroupView,
  query: URLSearchParams,
  setQuery: ReturnType<typeof useQuery>[1],
): Tab[] {
  const known = attempts.filter(({ before }) => before !== undefined);
  if (known.length === 0) return [];
  const content = () => (
    <BeforeAfter
      run={run}
      attempts={known}
      shown={query.get('scenario')}
      onShow={(scenario) => setQuery({ scenario })}
    />
  );
  return [{ key: 'before', label: 'Before and after', content }];
}

/** At first the best attempt beside the worst. */
function Compare({ attempts }: { attempts: readonly AttemptView[] }) {
  const ranked = attempts.toSorted((a, b) => (b.row.reward ?? -Infinity) - (a.row.reward ?? -Infinity));
  const [left, setLeft] = useState(ranked[0]!.row.id);
  const [right, setRight] = useState(ranked.at(-1)!.row.id);
  const find = (id: string): AttemptView => attempts.find(({ row }) => row.id === id) ?? attempts[0]!;
  const choice = (label: string, value: string, onChange: (id: string) => void) => (
    <label class="note">
      {label}{' '}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {attempts.map(({ row, title }) => (
          <option key={row.id} value={row.id}>
            {title}, {row.reward === null ? 'no reward' : `reward ${formatNumber(row.reward)}`}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <div class="choice">
        {choice('Left', left, setLeft)} {choice('Right', right, setRight)}
        <button
          type="button"
          onClick={() => {
            setLeft(right);
            setRight(left);
          }}
        >
          ⇄ swap
        </button>
      </div>
      <ConversationDiff left={find(left)} right={find(right)} />
    </>
  );
}

interface BeforeAfterProps {
  readonly run: string;
  /** Those that were played before training, too. */
  readonly attempts: readonly AttemptView[];
  /** Id of the shown one; null: the first. */
  readonly shown: string | null;
  readonly onShow: (id: string) => void;
}

/** A scenario of an evaluation beside itself before training. */
function BeforeAfter({ run, attempts, shown, onShow }: BeforeAfterProps) {
  const after = attempts.find(({ row }) => row.id === shown) ?? attempts[0]!;
  const { id } = after.before!;
  const before = useData<AttemptView>(`runs/${encodeURIComponent(run)}/attempts/${id}`);
  return (
    <>
      <p class="choice">
        <label class="note">
          Scenario{' '}
          <select value={after.row.id} onChange={(event) => onShow(event.currentTarget.value)}>
            {attempts.map((attempt) => (
              <option key={attempt.row.id} value={attempt.row.id}>
                {attempt.title}: {formatNumber(attempt.before?.reward)} → {formatNumber(attempt.row.reward)}
              </option>
            ))}
          </select>
        </label>
      </p>
      <Shown loaded={before} what={`attempt ${id}`}>
        {(view) => (
          <ConversationDiff left={view} right={after} titles={['before training', `after step ${after.row.step}`]} />
        )}
      </Shown>
    </>
  );
}
