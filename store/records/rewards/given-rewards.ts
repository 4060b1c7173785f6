/**
 * Ledger of the rewards that a group is given from outside. Whoever decides the group closes its ledger first, so that a
 * reward is either counted or refused.
 */
import type { z } from 'zod';

import { givenKey, type GroupPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { GivenRowSchema } from '../file-schemas.ts';
import { Ledger } from '../ledger.ts';

export type LedgerRow = z.output<typeof GivenRowSchema>;
export type RewardRow = Extract<LedgerRow, { kind: 'reward' }>;
export type ComparisonRow = Extract<LedgerRow, { kind: 'comparison' }>;
export type ClosedRow = Extract<LedgerRow, { kind: 'closed' }>;
/** A row that a person or a program gave. */
export type GivenRow = RewardRow | ComparisonRow;

/** Outcome of adding a row; `row` is the one that the ledger has. */
export type Added<Row extends GivenRow> =
  | { outcome: 'given'; row: Row }
  /** The same was given before: nothing was written. */
  | { outcome: 'same'; row: Row }
  /** The idempotency key belongs to another row. */
  | { outcome: 'key-reused'; row: GivenRow }
  /** The group was decided before. */
  | { outcome: 'closed'; row: ClosedRow }
  /** It was changed too often; `row` is the last one. */
  | { outcome: 'full'; row: Row };

/** How often an attempt's reward, or a reviewer's answer, may be given: every look at a group reads all rows. */
export const MOST_CHANGES = 100;

const ledgerOf = (store: Store, place: GroupPlace): Ledger<LedgerRow> =>
  new Ledger<LedgerRow>(store, GivenRowSchema, (index) => givenKey(place, index));

/** All rows of a group in order; none if nothing was given. */
export function readGiven(store: Store, place: GroupPlace, from = 0): Promise<LedgerRow[]> {
  return ledgerOf(store, place).read(from);
}

/** Adds a row unless the ledger has it already, is closed, or has its idempotency key for something else. */
export async function addGiven<Row extends GivenRow>(store: Store, place: GroupPlace, row: Row): Promise<Added<Row>> {
  const { rows, added } = await ledgerOf(store, place).append((before) =>
    findAnswer(before, row) === null ? row : null,
  );
  return added === null ? findAnswer(rows, row)! : { outcome: 'given', row: added as Row };
}

/** Outcome for which no row is needed; null if the row may be added. */
export function findAnswer<Row extends GivenRow>(rows: readonly LedgerRow[], row: Row): Added<Row> | null {
  const given = givenIn(rows);
  const sameKey = row.key === null ? undefined : given.find(({ key }) => key === row.key);
  if (sameKey !== undefined)
    return isSameSubject(sameKey, row) && isSameValue(sameKey, row)
      ? { outcome: 'same', row: sameKey as Row }
      : { outcome: 'key-reused', row: sameKey };
  const before = given.filter((each) => isSameSubject(each, row));
  const last = before.at(-1);
  const isRepeated = last !== undefined && isSameValue(last, row) && last.by === row.by && last.note === row.note;
  if (isRepeated) return { outcome: 'same', row: last as Row };
  const closed = findClosed(rows);
  if (closed !== undefined) return { outcome: 'closed', row: closed };
  return last === undefined || before.length < MOST_CHANGES ? null : { outcome: 'full', row: last as Row };
}

/** Decides that the rows so far count: the first decision stands, and all rows before it are returned. */
export async function closeLedger(
  store: Store,
  place: GroupPlace,
  reason: ClosedRow['reason'],
): Promise<{ givenRows: GivenRow[]; closed: ClosedRow }> {
  const closing: ClosedRow = { schema: 1, kind: 'closed', reason, at: new Date().toISOString() };
  const { rows } = await ledgerOf(store, place).append((given) => (findClosed(given) === undefined ? closing : null));
  return { givenRows: givenIn(rows), closed: findClosed(rows)! };
}

export function findClosed(rows: readonly LedgerRow[]): ClosedRow | undefined {
  return rows.find((row) => row.kind === 'closed');
}

/** The rows before the decision. */
export function givenIn(rows: readonly LedgerRow[]): GivenRow[] {
  const end = rows.findIndex(({ kind }) => kind === 'closed');
  return (end === -1 ? rows : rows.slice(0, end)).filter((row) => row.kind !== 'closed');
}

/** The reward that counts for each attempt that has one: the last. */
export function lastRewards(rows: readonly LedgerRow[]): Map<number, RewardRow> {
  const rewards = givenIn(rows).filter((row) => row.kind === 'reward');
  return new Map(rewards.map((row) => [row.attempt, row]));
}

/** Whether one takes the other's place: rewards of an attempt do whoever gives them, comparisons those of a reviewer. */
function isSameSubject(one: GivenRow, other: GivenRow): boolean {
  if (one.kind === 'reward') return other.kind === 'reward' && one.attempt === other.attempt;
  return other.kind === 'comparison' && one.left === other.left && one.right === other.right && one.by === other.by;
}

/** Whoever gives them, and why: the same request may be sent by another person. */
function isSameValue(one: GivenRow, other: GivenRow): boolean {
  if (one.kind === 'comparison') return one.answer === (other as ComparisonRow).answer;
  const { reward, metrics } = other as RewardRow;
  return one.reward === reward && isSameMetrics(one.metrics, metrics);
}

function isSameMetrics(one: RewardRow['metrics'] = {}, other: RewardRow['metrics'] = {}): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
