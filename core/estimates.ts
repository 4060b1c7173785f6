/** Confidence intervals of few samples. */
import { scaleOf } from './statistics.ts';

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
  const mean = values.reduce((sum, value) => sum + value / scale, 0) / values.length;
  if (values.length < 2) return { mean: scale * mean, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const variance = values.reduce((sum, value) => sum + (value / scale - mean) ** 2, 0) / (values.length - 1);
  const half = Z * Math.sqrt(variance / values.length);
  return { mean: scale * mean, low: scale * (mean - half), high: scale * (mean + half) };
}
