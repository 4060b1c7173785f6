/** Addresses of the pages of a run. */
import { pathTo } from '../location.ts';

/** Null as the branch: the newest. */
export function stepPath(run: string, step: number, branch: number | null): string {
  const path = pathTo('runs', run, 'steps', step);
  return branch === null ? path : `${path}?branch=${branch}`;
}

export function hrefTo(...parts: readonly (string | number)[]): string {
  return `#${pathTo(...parts)}`;
}
