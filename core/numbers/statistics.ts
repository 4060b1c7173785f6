/** Statistics over attempts, as in results and curves. */

export type Metrics = Record<string, number | boolean>;

/** Values are divided by it before they are summed or squared: those of usual size keep their bits, larger ones overflow. */
export function scaleOf(values: readonly number[]): number {
  const most = values.reduce((found, value) => Math.max(found, Math.abs(value)), 0);
  return most > LARGE ? most : 1;
}

/** Millions of squares of it are a number still. */
const LARGE = 1e150;

/** Null over nothing: a mean of no attempts is not 0. */
export function mean(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const scale = scaleOf(values);
  return scale * (values.reduce((sum, value) => sum + value / scale, 0) / values.length);
}

/** Of the values themselves, not of what they are samples of; null over nothing. */
export function deviation(values: readonly number[]): number | null {
  const scale = scaleOf(values);
  const average = mean(values.map((value) => value / scale));
  return average === null ? null : scale * Math.sqrt(mean(values.map((value) => (value / scale - average) ** 2))!);
}

/** `Math.max(...values)` without its limit: a call takes some 100,000 arguments. -Infinity over nothing. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

/** Infinity over nothing. */
export function smallest(values: readonly number[]): number {
  return values.reduce((least, value) => Math.min(least, value), Infinity);
}

/** The mean of each metric over the attempts that report it; a metric that is always boolean becomes `<name>Rate`. */
export function meanMetrics(attempts: readonly Metrics[]): Record<string, number> {
  const names = new Set(attempts.flatMap((metrics) => Object.keys(metrics)));
  return Object.fromEntries([...names].toSorted().map((name) => meanMetric(name, names, attempts)));
}

/** A rate keeps its name where the other one is that of another metric. */
function meanMetric(name: string, names: ReadonlySet<string>, attempts: readonly Metrics[]): [string, number] {
  const values = attempts.filter((metrics) => Object.hasOwn(metrics, name)).map((metrics) => metrics[name]);
  const isRate = values.every((value) => typeof value === 'boolean') && !names.has(`${name}Rate`);
  return [isRate ? `${name}Rate` : name, mean(values.map(Number)) ?? 0];
}

/** True if all rewards are equal. */
export function hasNoVariance(rewards: readonly number[]): boolean {
  return rewards.every((reward) => reward === rewards[0]);
}

/** First, last, and evenly spaced ones between. */
export function sampleEvenly<T>(items: readonly T[], limit: number): T[] {
  if (items.length <= limit) return [...items];
  return Array.from({ length: limit }, (_, index) => items[Math.round((index * (items.length - 1)) / (limit - 1))]!);
}

/** Null over nothing. */
export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

// Confidence intervals of few samples.

export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** Quantile of the normal distribution for 95 %. */
const Z = 1.96;

/** Wilson's interval for a share, valid near 0 and 1. */
export function estimateShare(share: number, count: number): Estimate {
  const center = (share + Z ** 2 / (2 * count)) / (1 + Z ** 2 / count);
  const half = (Z / (1 + Z ** 2 / count)) * Math.sqrt((share * (1 - share)) / count + Z ** 2 / (4 * count ** 2));
  return { mean: share, low: Math.max(0, center - half), high: Math.min(1, center + half) };
}

/** Mean and normal interval; unbounded for a single value. */
export function estimateMean(values: readonly number[]): Estimate {
  const scale = scaleOf(values);
  const center = values.reduce((sum, value) => sum + value / scale, 0) / values.length;
  if (values.length < 2) return { mean: scale * center, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const variance = values.reduce((sum, value) => sum + (value / scale - center) ** 2, 0) / (values.length - 1);
  const half = Z * Math.sqrt(variance / values.length);
  return { mean: scale * center, low: scale * (center - half), high: scale * (center + half) };
}
