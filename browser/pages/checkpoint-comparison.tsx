/** Two checkpoints beside each other: rewards, held-out metrics, and the settings that changed between them. */
import type { SettingChange } from '../../core/contract/contract.ts';
import { formatBytes, formatNumber, metricLabel, sortMetrics } from '../../core/reports/format.ts';
import type { CheckpointRow } from '../../views/api/run-views.ts';

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
      <div class="scroll" tabIndex={0} role="region" aria-label="Numbers of both">
        <table class="facts-table">
          <thead>
            <tr>
              <th scope="col">number</th>
              <th scope="col">{names[0]}</th>
              <th scope="col">{names[1]}</th>
              <th scope="col">difference</th>
            </tr>
          </thead>
          <tbody>
            {numbers.map(([label, one, other]) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td class="number">{formatNumber(one)}</td>
                <td class="number">{formatNumber(other)}</td>
                <td class="number">{one === null || other === null ? '–' : formatDifference(other - one)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">size</th>
              <td class="number">{formatBytes(left.bytes)}</td>
              <td class="number">{formatBytes(right.bytes)}</td>
              <td class="number">–</td>
            </tr>
          </tbody>
        </table>
      </div>
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

function formatDifference(value: number): string {
  return `${value > 0 ? '+' : ''}${formatNumber(value)}`;
}
