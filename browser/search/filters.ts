/** Filters of the search: their names in the address are those of the API. */

export const FILTER_NAMES = [
  'text',
  'tool',
  'failure',
  'truncated',
  'minReward',
  'maxReward',
  'metric',
  'scenario',
  'fromStep',
  'toStep',
  'kind',
  'sort',
] as const;

/** Those of the address, in one order, so that the same search has the same path. */
export function filtersOf(query: URLSearchParams): string {
  const filters = new URLSearchParams();
  for (const name of FILTER_NAMES) {
    const value = query.get(name);
    if (value !== null && value !== '') filters.set(name, value);
  }
  return filters.toString();
}
