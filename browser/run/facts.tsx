/** Numbers of a run at a glance. */
import type { ComponentChildren } from 'preact';
import { formatGroupId } from '../../core/attempt-id.ts';
import type { EvalResult, RunState } from '../../core/contract.ts';
import { describeCosts } from '../../core/costs.ts';
import { shortModelName } from '../../core/describe-config.ts';
import { describeHeldOut, formatDuration, formatNumber, headline } from '../../core/format.ts';
import { formatUsd } from '../../core/judge-spending.ts';
import { branchOfStep } from '../../core/lineage.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { pathTo } from '../location.ts';
import { CopyButton, Facts } from '../parts/small.tsx';
import { Ago } from '../parts/time.tsx';

export function RunFacts({ view, curve }: { view: RunView; curve: CurveView | null }) {
  const { row, state } = view;
  return (
    <section class="card run-facts" aria-label="Numbers of the run">
      <Facts
        of={[
          ...evaluationFacts(view),
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

function evaluationFacts({ row, state }: RunView): Fact[] {
  const [before, after] = [state?.evalBefore ?? null, state?.evals.at(-1) ?? state?.evalAfter ?? null];
  const newest = after ?? before;
  if (state === null || newest === null) return [['Reward', formatNumber(row.reward)]];
  const first = before !== null && before.step < newest.step ? before : null;
  return [
    [
      `Held out: ${headline(newest).label}`,
      <Held key="held" href={`#${evaluationPath(state, newest)}`} newest={newest} first={first} />,
    ],
    ['Reward in training', formatNumber(row.reward)],
  ];
}

function Held({ href, newest, first }: { href: string; newest: EvalResult; first: EvalResult | null }) {
  return (
    <a href={href} title={`${describeHeldOut(newest)}, after step ${newest.step}`}>
      {formatNumber(headline(newest).value)}
      {first !== null && <small class="dim"> from {formatNumber(headline(first).value)}</small>}
    </a>
  );
}

function evaluationPath({ run, lineage }: RunState, { step }: EvalResult): string {
  const branch = branchOfStep(lineage, step);
  return pathTo('runs', run, 'groups', formatGroupId({ branch, step, group: null }));
}

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
