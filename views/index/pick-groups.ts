/** Groups that a search has to read: for a page of all attempts by their place, those of the page alone. Pure. */
import type { AttemptQuery } from '../api/attempt-views.ts';
import type { LoggedGroup } from './index-files.ts';
import { canMatchGroup } from '../api/attempt-query.ts';

interface PickedGroups {
  readonly groups: readonly LoggedGroup[];
  /** Rows of the order before the first of these groups. */
  readonly before: number;
  /** Number of rows that match; null: their rows tell. */
  readonly total: number | null;
}

/** Parameters that say where rows are, or which page of them is asked for; every other one looks into rows or words. */
const OF_PLACES: ReadonlySet<keyof AttemptQuery> = new Set(['kind', 'fromStep', 'toStep', 'sort', 'offset', 'limit']);

export function pickGroups(query: AttemptQuery, all: Iterable<LoggedGroup>, limit: number): PickedGroups {
  const groups = [...all].filter(({ step, group }) => canMatchGroup(query, { step, isEval: group < 0 }));
  const { sort = 'newest', offset = 0 } = query;
  const isByPlace = sort === 'newest' || sort === 'oldest';
  if (!isByPlace || !Object.keys(query).every((name) => OF_PLACES.has(name as keyof AttemptQuery)))
    return { groups, before: 0, total: null };
  const picked: LoggedGroup[] = [];
  let [at, before] = [0, 0];
  for (const group of groups.toSorted(sort === 'newest' ? newestFirst : oldestFirst)) {
    if (at + group.rows <= offset) before += group.rows;
    else if (at < offset + limit) picked.push(group);
    at += group.rows;
  }
  return { groups: picked, before, total: at };
}

/** An evaluation comes after the groups of its step. */
const placeIn = ({ group }: LoggedGroup): number => (group < 0 ? Infinity : group);
const byGroup = (one: LoggedGroup, other: LoggedGroup): number =>
  placeIn(one) === placeIn(other) ? 0 : placeIn(one) - placeIn(other);
const oldestFirst = (one: LoggedGroup, other: LoggedGroup): number =>
  one.branch - other.branch || one.step - other.step || byGroup(one, other);
const newestFirst = (one: LoggedGroup, other: LoggedGroup): number =>
  other.branch - one.branch || other.step - one.step || byGroup(one, other);
