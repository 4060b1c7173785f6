/** Numbers of a run at a glance. */
import type { ComponentChildren } from 'preact';
import { describeCosts } from '../../core/rules/costs.ts';
import { shortModelName } from '../../core/reports/describe-config.ts';
import { formatDuration, formatNumber, metricLabel, sortMetrics, valueOf } from '../../core/reports/format.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import { findHeldOut } from '../../views/charts/held-out.ts';
import type { CurveView, RunView } from '../../views/api/run-views.ts';
import { PlainTable } from '../parts/plain-table.tsx';
import { CopyButton, Facts, Ago } from '../parts/small.tsx';
import { formatReason } from '../../core/rules/settings.ts';
import { pathTo } from '../location.ts';

export function RunFacts({ view, curve }: { view: RunView; curve: CurveView | null }) {
  const { row, state } = view;
  return (
    <section class="card run-facts" aria-label="Numbers of the run">
      <Facts
        of={[
          [row.heldOut === null ? 'Reward' : 'Reward of last step', formatNumber(row.reward)],
          ['Steps', `${row.step} of ${row.steps}`],
          ...heldOutFacts(view),
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

/** The reward, and the metrics beside the result, on held-out scenarios: before training, and after. */
function heldOutFacts({ state }: RunView): Fact[] {
  const result = state === null ? null : findHeldOut(state);
  const newest = result?.after ?? result?.before;
  if (result === null || newest == null) return [];
  const names = ['reward', ...sortMetrics(Object.keys(newest.evaluation.metrics))];
  return names
    .filter((name) => metricLabel(name) !== result.label)
    .map((name) => [
      `${metricLabel(name)}, held out`,
      <span key={name}>
        {formatNumber(valueOf(newest.evaluation, name))}
        {result.after !== null && result.before !== null && (
          <small class="dim"> from {formatNumber(valueOf(result.before.evaluation, name))}</small>
        )}
      </span>,
    ]);
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

/** Settings that a run was started with, their changes since, and the versions of what started it. */
export function Configuration({ view }: { view: RunView }) {
  const settings = flatten(view.config);
  return (
    <>
      <Changes view={view} />
      <h2>
        Configuration <CopyButton text={JSON.stringify(view.config, null, 2)} label="Copy JSON" />
      </h2>
      <PlainTable
        label="Configuration"
        names="setting"
        columns={[{ key: 'value', kind: 'words' }]}
        rows={settings.map(([name, value]) => ({ key: name, name, cells: [<code key={name}>{value}</code>] }))}
        isTall
      />
      <h2>Versions and scenarios</h2>
      <p class="note">
        {Object.entries(view.versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(' · ')}
        {view.trainScenarios !== null && ` · ${view.trainScenarios} training scenarios`}
        {view.evalScenarios !== null && ` · ${view.evalScenarios} of ${view.evalScenariosOf} held-out scenarios`}
      </p>
    </>
  );
}

function Changes({ view: { changes, row } }: { view: RunView }) {
  if (changes.length === 0) return null;
  return (
    <>
      <h2>Changes</h2>
      <ul class="card change-list">
        {changes.map(({ setting, from, to, step, branch, reason }) => (
          <li key={`${branch}.${step}.${setting}`}>
            <code>{setting}</code> {from ?? 'none'} → <b>{to}</b>{' '}
            <span class="dim">
              from{' '}
              <a href={`#${pathTo('runs', row.run, 'steps', step)}?branch=${branch}`}>
                step {step} of branch {branch}
              </a>{' '}
              on
              {formatReason(reason)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Nested settings by their path, `rollout.temperature`. */
function flatten(value: unknown, path = ''): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) {
    return [[path, typeof value === 'string' ? value : JSON.stringify(value)]];
  }
  return Object.entries(value).flatMap(([name, inner]) => flatten(inner, path === '' ? name : `${path}.${name}`));
}
