/** Curves with less noise. */
import type { Chart, Series } from './chart.ts';

/** Exponential running mean, from 0 (none) to 0.99; it starts without bias towards its first value. */
export function smoothValues(values: readonly (number | null)[], weight: number): (number | null)[] {
  let [sum, total] = [0, 0];
  return values.map((value) => {
    if (value === null) return null;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return sum / total;
  });
}

/** Lines get their running mean, above themselves drawn faintly; a chart that has a faint line already keeps it. */
export function smoothChart(chart: Chart, weight: number): Chart {
  if (weight <= 0) return chart;
  const raw = chart.series.find(({ style }) => style === 'faint');
  const smoothed = chart.series.flatMap((series): Series[] => {
    if (series.style !== 'line') return [series];
    const { interval: _, ...line } = series;
    if (raw !== undefined) return [{ ...line, values: smoothValues(raw.values, weight) }];
    return [
      { ...series, label: `${series.label}, raw`, style: 'faint' },
      { ...line, values: smoothValues(series.values, weight) },
    ];
  });
  return { ...chart, series: smoothed };
}

/** A sentence for those who cannot see the chart. */
export function describeChart({ title, x, series }: Chart, format: (value: number) => string): string {
  const lines = series.flatMap(({ label, values }) => {
    const known = values.flatMap((value, at) => (value === null ? [] : [{ value, step: x[at]! }]));
    const [first, last] = [known[0], known.at(-1)];
    if (first === undefined || last === undefined) return [];
    if (first === last) return [`${label} ${format(first.value)} at step ${first.step}`];
    return [`${label} from ${format(first.value)} at step ${first.step} to ${format(last.value)} at step ${last.step}`];
  });
  return `${title}: ${lines.join('; ')}`;
}
