/**
 * How far reviewers agree: Krippendorff's alpha (Computing Krippendorff's Alpha-Reliability, 2011), which allows any
 * number of reviewers and missing answers. 1 is perfect agreement, 0 is what chance gives. Pure.
 */

/** One reviewer's answer about one thing. */
export interface Rating<T> {
  readonly unit: string;
  readonly reviewer: string;
  readonly value: T;
}

export interface Agreement {
  /** Null if it is undefined: nothing was reviewed by two, or all values are equal. */
  readonly alpha: number | null;
  readonly reviewers: number;
  /** Things that at least two reviewers answered. */
  readonly units: number;
}

/** Of the reviewers of a run: at each step, and in all. */
export interface ReviewAgreement {
  readonly steps: readonly { readonly step: number; readonly alpha: number | null }[];
  readonly all: Agreement;
}

/** Squared difference of two values: nominal for names, interval for numbers. */
type Difference<T> = (a: T, b: T) => number;

const nominal: Difference<string> = (a, b) => (a === b ? 0 : 1);
const interval: Difference<number> = (a, b) => (a - b) ** 2;

export function agreeOnNames(ratings: readonly Rating<string>[]): Agreement {
  return agreementOf(ratings, nominal);
}

export function agreeOnNumbers(ratings: readonly Rating<number>[]): Agreement {
  return agreementOf(ratings, interval);
}

/** α = 1 − observed / expected disagreement, over values of things that two reviewers or more answered. */
function agreementOf<T>(ratings: readonly Rating<T>[], difference: Difference<T>): Agreement {
  const reviewers = new Set(ratings.map(({ reviewer }) => reviewer)).size;
  const byUnit = new Map<string, T[]>();
  for (const { unit, value } of ratings) byUnit.set(unit, [...(byUnit.get(unit) ?? []), value]);
  const units = [...byUnit.values()].filter((values) => values.length > 1);
  const all = units.flat();
  const observed = units.reduce((sum, values) => sum + disagreement(values, difference) / (values.length - 1), 0);
  const expected = disagreement(all, difference) / (all.length - 1);
  const isDefined = units.length > 0 && expected > 0;
  return { alpha: isDefined ? 1 - observed / expected : null, reviewers, units: units.length };
}

/** Over all ordered pairs of values; grouped by value, since a run has many answers of few kinds. */
function disagreement<T>(values: readonly T[], difference: Difference<T>): number {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const kinds = [...counts];
  return kinds.reduce(
    (sum, [a, many]) => kinds.reduce((inner, [b, others]) => inner + many * others * difference(a, b), sum),
    0,
  );
}
