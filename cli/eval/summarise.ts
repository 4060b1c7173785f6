/** What an evaluation came to, with the intervals that so few games leave. */
import type { AttemptRecord } from '../../store/trajectories.ts';
import { formatNumber, metricLabel, sortMetrics } from '../format.ts';
import { estimateMean, estimateShare } from '../statistics.ts';
import type { Estimate } from '../statistics.ts';

export interface EvalSummary {
  readonly model: string;
  readonly attempts: number;
  readonly failed: number;
  readonly reward: Estimate | null;
  readonly metrics: Readonly<Record<string, Estimate>>;
  /** The first failures, as the agent's author would want to read them. */
  readonly failures: readonly string[];
}

const SHOWN_FAILURES = 3;

export function summariseEval(model: string, records: readonly AttemptRecord[]): EvalSummary {
  const played = records.filter(({ status }) => status === 'ok');
  const failures = records.flatMap(({ failure }) => (failure === null ? [] : [failure.message]));
  const rewards = played.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  const names = new Set(played.flatMap(({ metrics }) => Object.keys(metrics)));
  return {
    model,
    attempts: records.length,
    failed: failures.length,
    reward: rewards.length === 0 ? null : estimateMean(rewards),
    metrics: Object.fromEntries([...names].map((name) => estimateMetric(name, played))),
    failures: failures.slice(0, SHOWN_FAILURES),
  };
}

/** As in a run's evaluations: a metric that is always boolean becomes `<name>Rate`. */
function estimateMetric(name: string, played: readonly AttemptRecord[]): [string, Estimate] {
  const values = played.flatMap(({ metrics }) => (metrics[name] === undefined ? [] : [metrics[name]]));
  const numbers = values.map(Number);
  if (!values.every((value) => typeof value === 'boolean')) return [name, estimateMean(numbers)];
  const share = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  return [`${name}Rate`, estimateShare(share, numbers.length)];
}

export function evalLines({ model, attempts, failed, reward, metrics, failures }: EvalSummary): string[] {
  const rows: [string, Estimate][] = sortMetrics(Object.keys(metrics)).map((name) => [
    metricLabel(name),
    metrics[name]!,
  ]);
  if (reward !== null) rows.unshift(['reward', reward]);
  const width = Math.max(0, ...rows.map(([label]) => label.length));
  return [
    `${model}: ${attempts} scenarios${failed > 0 ? `, ${failed} failed` : ''}`,
    ...rows.map(
      ([label, { mean, low, high }]) =>
        `  ${label.padEnd(width)}  ${formatNumber(mean)}  (${formatNumber(low)} to ${formatNumber(high)})`,
    ),
    ...failures.map((failure) => `  failure: ${failure}`),
    '95 % intervals in brackets',
  ];
}
