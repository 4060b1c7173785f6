/** A curve in braille: each character holds two columns of four dots. */
import { largest, mean, smallest } from '../../core/numbers/statistics.ts';

export interface CurveSize {
  readonly columns: number;
  readonly rows: number;
}

/** Bit of each dot in a braille character, by row and column. */
const DOTS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const BLANK = 0x2800;

export function drawCurve(values: readonly number[], { columns, rows }: CurveSize): string[] {
  const heights = dotHeights(values, columns * 2, rows * 4);
  const cells = Array.from({ length: rows }, () => Array.from({ length: columns }, () => BLANK));
  for (const [x, y] of heights.entries()) {
    // Fill up or down to the neighbour's height, so that a steep curve stays connected.
    const before = heights[x - 1] ?? y;
    const [from, to] = before < y ? [before + 1, y] : [y, Math.max(y, before - 1)];
    for (let dot = from; dot <= to; dot++) {
      const line = cells[dot >> 2]!;
      line[x >> 1] = line[x >> 1]! | DOTS[dot & 3]![x & 1]!;
    }
  }
  return cells.map((line) => String.fromCodePoint(...line));
}

/** Row of the curve's dot in each column, 0 at the top. A short curve is stretched to the full width. */
function dotHeights(values: readonly number[], width: number, height: number): number[] {
  const points = resample(values, Math.min(width, values.length));
  const [low, high] = [smallest(values), largest(values)];
  return Array.from({ length: width }, (_, x) => {
    const at = (x / (width - 1)) * (points.length - 1);
    const left = points[Math.floor(at)]!;
    const value = left + (points[Math.ceil(at)]! - left) * (at % 1);
    return Math.round(((high - value) / (high - low || 1)) * (height - 1));
  });
}

/** Means over `count` consecutive ranges. */
export function resample(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, bucket) => {
    const from = Math.floor((bucket * values.length) / count);
    const to = Math.floor(((bucket + 1) * values.length) / count);
    return mean(values.slice(from, to)) ?? 0;
  });
}
