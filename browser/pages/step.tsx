/** One step: its groups with their rewards, what became of each, and what was committed. */
import { useState } from 'preact/hooks';
import { formatGroupId } from '../../core/names/attempt-id.ts';
import { describeMetrics, formatNumber, plural } from '../../core/reports/format.ts';
import type { GroupRow, StepView } from '../../views/api/attempt-views.ts';
import { USE_LABELS, USE_REASONS, UseChip } from '../attempt/use-chip.tsx';
import { useData } from '../data.ts';
import { pathTo, useQuery, hrefTo, stepPath } from '../location.ts';
import { Bins, Histogram } from '../parts/bars.tsx';
import { CopyButton, Facts, Notice, Shown, Ago } from '../parts/small.tsx';
import { VirtualTable, type TableColumn } from '../parts/table.tsx';
import { Neighbours } from './neighbours.tsx';

export function StepPage({ run, step }: { run: string; step: number }) {
  const [query] = useQuery();
  const branch = query.get('branch');
  const search = branch === null ? '' : `?branch=${branch}`;
  const loaded = useData<StepView>(`runs/${encodeURIComponent(run)}/steps/${step}${search}`);
  return (
    <Shown loaded={loaded} what={`step ${step}`}>
      {(view) => <Step view={view} branch={branch === null ? null : Number(branch)} />}
    </Shown>
  );
}

function Step({ view, branch }: { view: StepView; branch: number | null }) {
  const { run, step, summary, groups, warnings, neighbours } = view;
  const to = (other: number | null): string | null => (other === null ? null : stepPath(run, other, branch));
  return (
    <>
      <header class="masthead">
        <h1>Step {step}</h1>
        <span class="dim">
          {view.branch === 0 ? '' : `branch ${view.branch} · `}
          {summary === null ? 'not committed yet' : describeMetrics(summary.reward, summary.metrics)}
        </span>
        <Neighbours what="step" previous={to(neighbours.previous)} next={to(neighbours.next)} />
      </header>
      {warnings.map((warning, index) => (
        <Notice key={index} level="warn">
          {warning}
        </Notice>
      ))}
      <StepFacts view={view} />
      <Evaluation view={view} />
      <h2>Groups</h2>
      {groups.length === 0 ? (
        <p class="dim">
          {summary?.examples === undefined
            ? 'The store holds no groups of this step.'
            : `A supervised step: ${plural(summary.examples, 'example')}, no groups.`}
        </p>
      ) : (
        <Groups view={view} />
      )}
    </>
  );
}

function StepFacts({
  view: { summary, sampler, adapterSha256, parent, platform, committedAt, run, step },
}: {
  view: StepView;
}) {
  const hash = (value: string | null) =>
    value === null ? (
      '–'
    ) : (
      <>
        <code title={value}>{value.slice(0, 12)}</code> <CopyButton text={value} />
      </>
    );
  return (
    <div class="card facts-card">
      <Facts
        of={[
          ['sampled by', sampler ?? '–'],
          ['adapter', hash(adapterSha256)],
          ['parent', parent ?? '–'],
          ['platform', <span title={platform ?? undefined}>{platform ?? '–'}</span>],
          ['committed', <Ago at={committedAt} />],
          ...(summary === null
            ? []
            : ([
                ['learning rate', summary.learningRate.toExponential(2)],
                [
                  'attempts',
                  <a href={`${hrefTo('runs', run, 'attempts')}?fromStep=${step}&toStep=${step}`}>
                    {summary.attempts}, {summary.failedAttempts} failed
                  </a>,
                ],
                ['replaced groups', String(summary.replacedGroups)],
                ['sampled tokens', String(summary.sampledTokens)],
                ['gradient norm', formatNumber(summary.train['gradNorm'])],
                ['entropy', formatNumber(summary.train['entropy'])],
              ] as const)),
        ]}
      />
    </div>
  );
}

function Evaluation({ view: { evaluation, run, branch, step } }: { view: StepView }) {
  if (evaluation === null) return null;
  return (
    <>
      <h2>Evaluation</h2>
      <p>
        {describeMetrics(evaluation.reward, evaluation.metrics)} · {plural(evaluation.attempts, 'held-out attempt')},{' '}
        {evaluation.failed} failed ·{' '}
        <a href={hrefTo('runs', run, 'groups', formatGroupId({ branch, step, group: null }))}>open its attempts</a>
      </p>
    </>
  );
}

function Groups({ view }: { view: StepView }) {
  const [use, setUse] = useState<GroupRow['use'] | null>(null);
  const { run, groups } = view;
  const uses = [...new Set(groups.map((group) => group.use))];
  const rewards = groups.flatMap((group) => group.rewards.filter((reward) => reward !== null));
  const range: [number, number] = [Math.min(0, ...rewards), Math.max(0, ...rewards)];
  const shown = use === null ? groups : groups.filter((group) => group.use === use);
  return (
    <>
      <div class="step-overview">
        <figure class="card step-histogram">
          <figcaption class="note">All rewards of the step</figcaption>
          <Histogram values={rewards} what="rewards" bins={24} height={72} range={range} />
        </figure>
        <div class="choice" role="group" aria-label="Show groups">
          {uses.length > 1 && (
            <button type="button" aria-pressed={use === null} onClick={() => setUse(null)}>
              all {groups.length}
            </button>
          )}
          {uses.length > 1 &&
            uses.map((name) => (
              <button
                key={name}
                type="button"
                aria-pressed={use === name}
                title={USE_REASONS[name]}
                onClick={() => setUse(name)}
              >
                {USE_LABELS[name]} {groups.filter((group) => group.use === name).length}
              </button>
            ))}
        </div>
      </div>
      <VirtualTable
        label="Groups"
        columns={columnsFor(range)}
        rows={shown}
        keyOf={formatGroupId}
        linkOf={(row) => pathTo('runs', run, 'groups', formatGroupId(row))}
        rowHeight={44}
      />
    </>
  );
}

function columnsFor(range: readonly [number, number]): TableColumn<GroupRow>[] {
  const ends = { align: 'end' } as const;
  return [
    {
      key: 'group',
      label: 'Group',
      width: '112px',
      value: ({ step, group }) => step * 1e6 + group,
      render: formatGroupId,
    },
    {
      key: 'scenario',
      label: 'Scenario',
      width: 'minmax(140px, 2fr)',
      value: ({ scenario }) => scenario,
      render: ({ scenario }) => <bdi>{scenario}</bdi>,
    },
    {
      key: 'rewards',
      label: 'Rewards',
      width: '144px',
      render: ({ rewards }) => {
        const known = rewards.filter((reward) => reward !== null);
        const says = `Rewards ${known.map((reward) => formatNumber(reward)).join(', ')}`;
        if (known.length === 0) return <span class="dim">none</span>;
        return <Bins values={known} what="rewards" says={says} bins={14} height={28} range={range} />;
      },
    },
    { key: 'mean', label: 'Mean', ...ends, value: ({ mean }) => mean, render: ({ mean }) => formatNumber(mean) },
    {
      key: 'deviation',
      label: 'Deviation',
      ...ends,
      value: ({ deviation }) => deviation,
      render: ({ deviation }) => formatNumber(deviation),
    },
    { key: 'failed', label: 'Failed', ...ends, value: ({ failed }) => failed, render: ({ failed }) => failed },
    {
      key: 'truncated',
      label: 'Truncated',
      ...ends,
      value: ({ truncated }) => truncated,
      render: ({ truncated }) => truncated,
    },
    {
      key: 'tokens',
      label: 'Tokens',
      ...ends,
      value: ({ sampledTokens }) => sampledTokens,
      render: ({ sampledTokens }) => sampledTokens,
    },
    { key: 'use', label: 'Use', width: '150px', value: ({ use }) => use, render: ({ use }) => <UseChip use={use} /> },
  ];
}
