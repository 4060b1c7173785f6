/** The rows of a search that come first. */
import { ORDERS, type Compare } from '../api/attempt-query.ts';
import type { AttemptQuery, AttemptRow } from '../api/attempt-views.ts';

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
