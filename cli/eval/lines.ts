/** An evaluation in the terminal: models side by side, one row for each measure. */
import { shortModelName } from '../../core/describe-config.ts';
import { formatNumber } from '../terminal/format.ts';
import type { Estimate } from '../report/statistics.ts';
import { createTable } from '../terminal/table.ts';
import { planMeasures } from './measures.ts';
import type { EvalSummary } from './summarise.ts';

export function evalLines(summary: EvalSummary): string[] {
  const { agent, scenarios, models, notes } = summary;
  const rows = planMeasures(summary).map(({ label, values }) => [label, ...values.map(formatEstimate)]);
  const failed = models.some((model) => model.failed > 0)
    ? [['failed', ...models.map((each) => `${each.failed}`)]]
    : [];
  return [
    `${agent}: ${scenarios} scenarios`,
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

function formatEstimate(estimate: Estimate | null): string {
  if (estimate === null) return '–';
  const { mean, low, high } = estimate;
  return `${formatNumber(mean)} (${formatNumber(low)} to ${formatNumber(high)})`;
}
