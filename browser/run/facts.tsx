/** Numbers of a run at a glance. */
import type { ComponentChildren } from 'preact';
import { describeCosts } from '../../core/costs.ts';
import { shortModelName } from '../../core/describe-config.ts';
import { formatDuration, formatNumber } from '../../core/format.ts';
import { formatUsd } from '../../core/judge-spending.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { CopyButton, Facts, Ago } from '../parts/small.tsx';

export function RunFacts({ view, curve }: { view: RunView; curve: CurveView | null }) {
  const { row, state } = view;
  return (
    <section class="card run-facts" aria-label="Numbers of the run">
      <Facts
        of={[
          [row.heldOut === null ? 'Reward' : 'Reward of last step', formatNumber(row.reward)],
          ['Steps', `${row.step} of ${row.steps}`],
          ...(row.state === 'running' && state !== null ? [['Phase', state.phase] as const] : []),
          ['Time', formatDuration(row.wallSeconds)],
          ['Cost', <Cost key="cost" view={view} />],
          ...countFacts(curve),
          ['Agent', <span title={row.agent}>{row.agent}</span>],
          ['Base model', <span title={row.baseModel}>{shortModelName(row.baseModel)}</span>],
          ...(row.parent === null ? [] : [['Started from', row.parent] as const]),
          ['Host', row.host ?? '–'],
          ['Updated', <Ago key="updated" at={row.updatedAt} />],
          ...adapterFact(state?.adapterSha256 ?? null),
        ]}
      />
    </section>
  );
}

type Fact = readonly [string, ComponentChildren];

function Cost({ view: { row, state } }: { view: RunView }) {
  const costs = state?.costs;
  if (row.usd === null) return <span class="dim">–</span>;
  return (
    <span title={costs === undefined ? undefined : (describeCosts(costs) ?? undefined)}>${formatUsd(row.usd)}</span>
  );
}

function countFacts(curve: CurveView | null): Fact[] {
  if (curve === null) return [];
  const sum = (of: (step: CurveView['steps'][number]) => number): string =>
    curve.steps.reduce((total, step) => total + of(step), 0).toLocaleString('en');
  return [
    ['Attempts', sum(({ attempts }) => attempts)],
    ['Tokens sampled', sum(({ sampledTokens }) => sampledTokens)],
  ];
}

function adapterFact(sha256: string | null): Fact[] {
  if (sha256 === null) return [];
  return [
    [
      'Adapter',
      <span class="with-copy">
        <code title={sha256}>{sha256.slice(0, 8)}</code> <CopyButton text={sha256} title="Copy the adapter’s SHA-256" />
      </span>,
    ],
  ];
}
