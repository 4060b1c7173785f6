/** A curve in braille: each character holds two columns of four dots. */
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
  const points = resample(values, Math.min(columns * 2, values.length));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const cells = Array.from({ length: rows }, () => Array.from({ length: columns }, () => BLANK));
  const heightOf = (value: number) => Math.round(((high - value) / (high - low || 1)) * (rows * 4 - 1));
  // Fewer values than dots: the curve grows over the whole width, so that a young run is not a speck.
  const columnOf = (index: number) => Math.round((index / Math.max(1, points.length - 1)) * (columns * 2 - 1));
  for (let index = 1; index < points.length; index++) {
    const [from, to] = [columnOf(index - 1), columnOf(index)];
    for (let x = from; x <= to; x++) {
      const share = to === from ? 1 : (x - from) / (to - from);
      const y = heightOf(points[index - 1]! + (points[index]! - points[index - 1]!) * share);
      const line = cells[y >> 2]!;
      line[x >> 1] = line[x >> 1]! | DOTS[y & 3]![x & 1]!;
    }
  }
  return cells.map((line) => String.fromCodePoint(...line));
}

/** Means of `count` neighbouring stretches. */
export function resample(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, bucket) => {
    const from = Math.floor((bucket * values.length) / count);
    const to = Math.floor(((bucket + 1) * values.length) / count);
    return mean(values.slice(from, to));
  });
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
