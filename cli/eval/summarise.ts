/** Results of an evaluation with confidence intervals. */
import { pairedDifferences } from '../../core/numbers/compare-evaluations.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { estimateMean, estimateShare, type Estimate } from '../../core/numbers/statistics.ts';
import type { AttemptCost } from '../players/attempt-runner.ts';
import { shortModelName } from '../../core/reports/describe-config.ts';
import { formatNumber, isRate, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import type { Measure } from '../../views/api/evaluation-view.ts';
import { createTable } from '../terminal/table.ts';

interface ModelSummary {
  readonly model: string;
  readonly attempts: number;
  readonly failed: number;
  readonly reward: Estimate | null;
  /** Reward minus that of the first model on the same scenarios; null for the first. */
  readonly rewardDifference: Estimate | null;
  readonly metrics: Readonly<Record<string, Estimate>>;
  /** Tokens and cost per scenario. */
  readonly promptTokens: Estimate | null;
  readonly completionTokens: Estimate | null;
  readonly costUsd: Estimate | null;
  /** Total over all scenarios. */
  readonly totalCostUsd: number | null;
  /** Seconds per call. */
  readonly latencySeconds: Estimate | null;
  /** First failure messages. */
  readonly failures: readonly string[];
  /** Reason why it was not played to the end. */
  readonly error: string | null;
}

export interface EvalSummary {
  readonly agent: string;
  readonly scenarios: number;
  /** Number of scenarios that these are a sample of. */
  readonly of: number;
  readonly models: readonly ModelSummary[];
  readonly notes: readonly string[];
}

/** The attempts of one model, and what those that made a call cost. */
export interface Played {
  readonly attempts: readonly AttemptRecord[];
  readonly costs: readonly AttemptCost[];
}

/** Attempts of one model, or the reason why there are none. */
export interface Outcome {
  readonly model: string;
  readonly played: Played | null;
  readonly error: string | null;
}

const SHOWN_FAILURES = 3;

export function summariseOutcomes(
  agent: string,
  { played, of }: { readonly played: number; readonly of: number },
  notes: readonly string[],
  outcomes: readonly Outcome[],
): EvalSummary {
  const first = outcomes[0]?.played?.attempts ?? [];
  const models = outcomes.map((outcome, index) => summariseModel(outcome, index === 0 ? null : first));
  return { agent, scenarios: played, of, models, notes };
}

function summariseModel({ model, played, error }: Outcome, first: readonly AttemptRecord[] | null): ModelSummary {
  const { attempts, costs } = played ?? { attempts: [], costs: [] };
  const good = attempts.filter(({ status }) => status === 'ok');
  const failures = attempts.flatMap(({ failure }) => (failure === null ? [] : [failure.message]));
  const names = new Set(good.flatMap(({ metrics }) => Object.keys(metrics)));
  const paid = known(costs, ({ costUsd }) => costUsd);
  return {
    model,
    attempts: attempts.length,
    failed: failures.length,
    reward: estimate(good.flatMap(({ reward }) => reward ?? [])),
    rewardDifference: first === null ? null : estimate(pairedDifferences(good, first)),
    metrics: Object.fromEntries([...names].map((name) => estimateMetric(name, good))),
    promptTokens: estimate(known(costs, ({ promptTokens }) => promptTokens)),
    completionTokens: estimate(known(costs, ({ completionTokens }) => completionTokens)),
    costUsd: estimate(paid),
    totalCostUsd: paid.length === 0 ? null : paid.reduce((sum, cost) => sum + cost, 0),
    latencySeconds: estimate(costs.map(({ latencySeconds }) => latencySeconds)),
    failures: failures.slice(0, SHOWN_FAILURES),
    error,
  };
}

/** Values of all costs, or none if one is missing. */
function known(costs: readonly AttemptCost[], value: (cost: AttemptCost) => number | null): number[] {
  const values = costs.flatMap((cost) => value(cost) ?? []);
  return values.length === costs.length ? values : [];
}

/** Estimate of a metric. As in a run's evaluations, a metric that is always boolean becomes `<name>Rate`. */
function estimateMetric(name: string, played: readonly AttemptRecord[]): [string, Estimate] {
  const values = played.flatMap(({ metrics }) => (metrics[name] === undefined ? [] : [metrics[name]]));
  const numbers = values.map(Number);
  if (!values.every((value) => typeof value === 'boolean')) return [name, estimateMean(numbers)];
  const share = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  return [`${name}Rate`, estimateShare(share, numbers.length)];
}

function estimate(values: readonly number[]): Estimate | null {
  return values.length === 0 ? null : estimateMean(values);
}

/** Rows of the table and charts of the report, in this order, without those that no model has. */
export function planMeasures({ models }: EvalSummary): Measure[] {
  const measure = (label: string, value: (model: ModelSummary) => Estimate | null, isShare = false): Measure => ({
    label,
    values: models.map(value),
    isShare,
  });
  const names = sortMetrics(new Set(models.flatMap(({ metrics }) => Object.keys(metrics))));
  return [
    measure('reward', ({ reward }) => reward),
    measure('reward vs. first model', ({ rewardDifference }) => rewardDifference),
    ...names.map((name) => measure(metricLabel(name), ({ metrics }) => metrics[name] ?? null, isRate(name))),
    measure('input tokens', ({ promptTokens }) => promptTokens),
    measure('output tokens', ({ completionTokens }) => completionTokens),
    measure('US dollars', ({ costUsd }) => costUsd),
    measure('seconds per call', ({ latencySeconds }) => latencySeconds),
  ].filter(({ values }) => values.some((value) => value !== null));
}

/** Models side by side, one row for each measure. */
export function evalLines(summary: EvalSummary): string[] {
  const { agent, scenarios, of, models, notes } = summary;
  const rows = planMeasures(summary).map(({ label, values }) => [label, ...values.map(formatEstimate)]);
  const failed = models.some((model) => model.failed > 0)
    ? [['failed', ...models.map((each) => `${each.failed}`)]]
    : [];
  return [
    `${agent}: ${of > scenarios ? `${scenarios} of ${of}` : scenarios} scenarios`,
    ...createTable(['', ...models.map(({ model }) => shortModelName(model))], [...rows, ...failed]).split('\n'),
    '95 % intervals in brackets; tokens and dollars of a scenario',
    ...models.flatMap(({ model, totalCostUsd }) =>
      totalCostUsd === null ? [] : [`${model} cost ${formatNumber(totalCostUsd)} US dollars in all`],
    ),
    ...notes.map((note) => `note: ${note}`),
    ...models.flatMap(({ model, failures }) => failures.map((failure) => `failure of ${model}: ${failure}`)),
    ...models.flatMap(({ model, error }) => (error === null ? [] : [`${model} was not evaluated: ${error}`])),
  ];
}

function formatEstimate(value: Estimate | null): string {
  if (value === null) return '–';
  const { mean, low, high } = value;
  return `${formatNumber(mean)} (${formatNumber(low)} to ${formatNumber(high)})`;
}
