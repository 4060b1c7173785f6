/** Two checkpoints beside each other: rewards, held-out metrics, and the settings that changed between them. */
import type { SettingChange } from '../../core/contract/contract.ts';
import { formatBytes, formatNumber, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import type { CheckpointRow } from '../../views/api/run-views.ts';
import { PlainTable } from '../parts/plain-table.tsx';

interface ComparisonProps {
  readonly rows: readonly [CheckpointRow, CheckpointRow];
  readonly names: readonly [string, string];
  readonly changes: readonly SettingChange[];
}

export function CheckpointComparison({ rows, names, changes }: ComparisonProps) {
  const [left, right] = rows;
  const metrics = sortMetrics(new Set(rows.flatMap(({ evaluation }) => Object.keys(evaluation?.metrics ?? {}))));
  const numbers: [string, number | null, number | null][] = [
    ['reward in training', left.reward, right.reward],
    ['reward, held out', left.evaluation?.reward ?? null, right.evaluation?.reward ?? null],
    ...metrics.map((name): [string, number | null, number | null] => [
      `${metricLabel(name)}, held out`,
      left.evaluation?.metrics[name] ?? null,
      right.evaluation?.metrics[name] ?? null,
    ]),
  ];
  const [from, to] = [Math.min(left.step, right.step), Math.max(left.step, right.step)];
  const between = changes.filter(({ step }) => step > from && step <= to);
  return (
    <section class="card padded opened" aria-label="Comparison">
      <h2>
        {names[0]} and {names[1]}
      </h2>
      <PlainTable
        label="Numbers of both"
        names="number"
        columns={[...names, 'difference'].map((key) => ({ key }))}
        rows={[
          ...numbers.map(([label, one, other]) => ({
            key: label,
            name: label,
            cells: [formatNumber(one), formatNumber(other), formatDifference(one, other)],
          })),
          { key: 'size', name: 'size', cells: [formatBytes(left.bytes), formatBytes(right.bytes), '–'] },
        ]}
      />
      <p class="note">
        {between.length === 0
          ? 'No setting changed between the two.'
          : `Changed between the two: ${between
              .map(
                ({ setting, from: before, to: after, step }) =>
                  `${setting} ${String(before)} → ${String(after)} from step ${step} on`,
              )
              .join('; ')}`}
      </p>
    </section>
  );
}

function formatDifference(one: number | null, other: number | null): string {
  if (one === null || other === null) return '–';
  const value = other - one;
  return `${value > 0 ? '+' : ''}${formatNumber(value)}`;
}
