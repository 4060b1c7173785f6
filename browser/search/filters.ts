/** Filters of the search: their names in the address are those of the API. */
import { ATTEMPT_PARAMETERS } from '../../views/api/attempt-query.ts';

export const FILTER_NAMES = Object.keys(ATTEMPT_PARAMETERS).filter((name) => name !== 'offset' && name !== 'limit');

/** Those of the address, in one order, so that the same search has the same path. */
export function filtersOf(query: URLSearchParams): string {
  const filters = new URLSearchParams();
  for (const name of FILTER_NAMES) {
    const value = query.get(name);
    if (value !== null && value !== '') filters.set(name, value);
  }
  return filters.toString();
}
