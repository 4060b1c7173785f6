/** Chart of a report, as columns for uPlot. */
import type { StepSummary } from '../../core/contract/contract.ts';

export interface Chart {
  readonly section: Section;
  readonly title: string;
  readonly note: string;
  readonly x: readonly number[];
  readonly series: readonly Series[];
  /** Fixed range for shares, so that reports can be compared by eye. */
  readonly range: readonly [number, number] | null;
}

/** Section of the page: `more` is folded. */
export type Section = 'outcomes' | 'policy' | 'mismatch' | 'attempts' | 'time' | 'more';

/** In the order of the page, with their headings. */
export const CHART_SECTIONS: readonly (readonly [Section, string])[] = [
  ['outcomes', 'Reward and outcomes'],
  ['policy', 'Policy'],
  ['mismatch', 'Sampler and trainer'],
  ['attempts', 'Attempts and tokens'],
  ['time', 'Time'],
  ['more', 'More metrics of the trainer'],
];

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  readonly style: Style;
  /** CSS variable, so that light and dark pages have their own colors. */
  readonly color: string;
  /** 95 % interval of each value. */
  readonly interval?: Interval;
}

interface Interval {
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
}

/** `points` are measurements far apart (evaluations), `faint` is the raw line under its mean. */
type Style = 'line' | 'faint' | 'points';

/** A chart whose values come from steps, one line for each number. */
export interface ChartPlan {
  readonly section: Section;
  readonly title: string;
  readonly note: string;
  readonly lines: readonly Line[];
  readonly range?: readonly [number, number];
}

export interface Line {
  readonly label: string;
  /** Name of the trainer's metric that it is. */
  readonly metric?: string;
  readonly value: (step: StepSummary) => number | null | undefined;
  readonly style?: Style;
}

const COLORS = 6;
export const color = (index: number): string => `--series-${(index % COLORS) + 1}`;

/** Drops lines without any value. */
export function chartSteps({ lines, ...plan }: ChartPlan, steps: readonly StepSummary[]): Chart {
  const known = lines
    .map((line) => ({ ...line, values: valuesOf(line, steps) }))
    .filter(({ values }) => hasAny(values));
  return {
    range: null,
    ...plan,
    x: steps.map(({ step }) => step),
    series: known.map(({ label, values, style = 'line' }, index) => ({ label, values, style, color: color(index) })),
  };
}

export function valuesOf({ value }: Line, steps: readonly StepSummary[]): (number | null)[] {
  return steps.map((step) => value(step) ?? null);
}

function hasAny(values: readonly (number | null)[]): boolean {
  return values.some((value) => value !== null);
}
