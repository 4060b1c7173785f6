/** Which rows a query asks for, and in which order. Pure. */
import { TemperError } from '../../core/failures.ts';
import { parseMetricFilter } from '../../core/metric-filter.ts';
import { ORDERS, type Compare } from '../api/attempt-orders.ts';
import type { AttemptQuery, AttemptRow } from '../api/attempt-views.ts';

type Matches = (row: AttemptRow) => boolean;

/** All that a row itself tells; text is looked for elsewhere. */
export function rowMatcher(query: AttemptQuery): Matches {
  const { tool, failure, truncated, minReward, maxReward, metric, scenario } = query;
  const tests: Matches[] = [];
  if (tool !== undefined) tests.push(({ tools }) => tools.includes(tool));
  if (failure !== undefined) tests.push((row) => (failure === 'any' ? row.failure !== null : row.failure === failure));
  if (truncated !== undefined) tests.push((row) => row.truncated === truncated);
  if (minReward !== undefined) tests.push(({ reward }) => reward !== null && reward >= minReward);
  if (maxReward !== undefined) tests.push(({ reward }) => reward !== null && reward <= maxReward);
  if (scenario !== undefined) tests.push((row) => row.scenario === scenario);
  if (metric !== undefined) tests.push(metricMatcher(metric));
  return (row) => tests.every((matches) => matches(row));
}

/** A group of attempts as far as its place tells whether it can match. */
export function canMatchGroup(query: AttemptQuery, { step, isEval }: { step: number; isEval: boolean }): boolean {
  const { kind, fromStep = 0, toStep = Infinity } = query;
  return step >= fromStep && step <= toStep && (kind === undefined || (kind === 'eval') === isEval);
}

function metricMatcher(condition: string): Matches {
  const matches = parseMetricFilter(condition);
  if (matches !== null) return ({ metrics }) => matches(metrics);
  throw new TemperError(
    'BadConfig',
    `metric must be a name, one of >= <= > < = != and a number, such as moves<3, got ${JSON.stringify(condition.slice(0, 200))}; change or remove it`,
  );
}

export const SORTS = Object.keys(ORDERS) as readonly NonNullable<AttemptQuery['sort']>[];

/** The best of many in bounded memory. */
export class BestMatches<T extends { readonly row: AttemptRow }> {
  readonly #most: number;
  readonly #compare: Compare;
  #kept: T[] = [];
  /** Number of all that were added. */
  total = 0;

  constructor(sort: NonNullable<AttemptQuery['sort']>, most: number) {
    this.#compare = ORDERS[sort];
    this.#most = most;
  }

  add(match: T): void {
    this.total += 1;
    this.#kept.push(match);
    if (this.#kept.length > 2 * this.#most + 1000) this.#kept = this.sorted();
  }

  sorted(): T[] {
    return this.#kept.toSorted((one, other) => this.#compare(one.row, other.row)).slice(0, this.#most);
  }
}
