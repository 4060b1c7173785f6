/**
 * Ledger of the rewards that a group is given from outside: numbered rows, each published once. Whoever decides the group
 * closes its ledger first, so that a reward is either counted or refused, without locks.
 */
import { decodeJson, encodeJson } from '../bytes/json.ts';
import { givenKey, type GroupPlace } from '../layout.ts';
import type { Store } from '../store.ts';
import type { z } from 'zod';
import { GivenRowSchema, parseStored, readStored } from './file-schemas.ts';

export type GivenRow = z.output<typeof GivenRowSchema>;
export type RewardRow = Extract<GivenRow, { kind: 'reward' }>;
export type ComparisonRow = Extract<GivenRow, { kind: 'comparison' }>;
export type ClosedRow = Extract<GivenRow, { kind: 'closed' }>;
/** A row that a person or a program gave. */
export type Gift = RewardRow | ComparisonRow;

/** Outcome of adding a row; `row` is the one that the ledger has. */
export type Added<Row extends Gift> =
  | { outcome: 'given'; row: Row }
  /** The same was given before: nothing was written. */
  | { outcome: 'same'; row: Row }
  /** The idempotency key belongs to another gift. */
  | { outcome: 'key-reused'; row: Gift }
  /** The group was decided before. */
  | { outcome: 'closed'; row: ClosedRow }
  /** It was changed too often; `row` is the last one. */
  | { outcome: 'full'; row: Row };

const ROWS_AT_ONCE = 32;
/** How often an attempt's reward, or a reviewer's answer, may be given: every look at a group reads all rows. */
export const MOST_CHANGES = 100;

/** All rows of a group in order; none if nothing was given. */
export async function readGiven(store: Store, place: GroupPlace, from = 0): Promise<GivenRow[]> {
  const rows: GivenRow[] = [];
  for (let ahead = 1; ; ahead = Math.min(2 * ahead, ROWS_AT_ONCE)) {
    const keys = Array.from({ length: ahead }, (_, index) => givenKey(place, from + rows.length + index));
    const read = await Promise.all(keys.map((key) => readStored(store, key, GivenRowSchema)));
    const end = read.indexOf(null);
    rows.push(...read.slice(0, end === -1 ? ahead : end).filter((row) => row !== null));
    if (end !== -1) return rows;
  }
}

/** Adds a row unless the ledger has it already, is closed, or has its idempotency key for something else. */
export async function addGift<Row extends Gift>(store: Store, place: GroupPlace, gift: Row): Promise<Added<Row>> {
  const rows = await readGiven(store, place);
  for (;;) {
    const found = findAnswer(rows, gift);
    if (found !== null) return found;
    const { created, row } = await publishRow(store, place, rows.length, gift);
    if (created) return { outcome: 'given', row: row as Row };
    rows.push(row);
  }
}

/** Outcome for which no row is needed; null if the gift may be added. */
export function findAnswer<Row extends Gift>(rows: readonly GivenRow[], gift: Row): Added<Row> | null {
  const gifts = giftsOf(rows);
  const sameKey = gift.key === null ? undefined : gifts.find(({ key }) => key === gift.key);
  if (sameKey !== undefined)
    return isSameSubject(sameKey, gift) && isSameValue(sameKey, gift)
      ? { outcome: 'same', row: sameKey as Row }
      : { outcome: 'key-reused', row: sameKey };
  const given = gifts.filter((row) => isSameSubject(row, gift));
  const last = given.at(-1);
  const isRepeated = last !== undefined && isSameValue(last, gift) && last.by === gift.by && last.note === gift.note;
  if (isRepeated) return { outcome: 'same', row: last as Row };
  const closed = rows.find((row) => row.kind === 'closed');
  if (closed !== undefined) return { outcome: 'closed', row: closed };
  return last === undefined || given.length < MOST_CHANGES ? null : { outcome: 'full', row: last as Row };
}

/** Decides that the rows so far count: the first decision stands, and all rows before it are returned. */
export async function closeLedger(
  store: Store,
  place: GroupPlace,
  reason: ClosedRow['reason'],
): Promise<{ gifts: Gift[]; closed: ClosedRow }> {
  const rows = await readGiven(store, place);
  for (;;) {
    const closed = rows.find((row) => row.kind === 'closed');
    if (closed !== undefined) return { gifts: giftsOf(rows), closed };
    const closing: ClosedRow = { schema: 1, kind: 'closed', reason, at: new Date().toISOString() };
    rows.push((await publishRow(store, place, rows.length, closing)).row);
  }
}

/** The rows before the decision. */
export function giftsOf(rows: readonly GivenRow[]): Gift[] {
  const end = rows.findIndex(({ kind }) => kind === 'closed');
  return (end === -1 ? rows : rows.slice(0, end)).filter((row) => row.kind !== 'closed');
}

/** The reward that counts for each attempt that has one: the last. */
export function lastRewards(rows: readonly GivenRow[]): Map<number, RewardRow> {
  const rewards = giftsOf(rows).filter((row) => row.kind === 'reward');
  return new Map(rewards.map((row) => [row.attempt, row]));
}

async function publishRow(store: Store, place: GroupPlace, number: number, row: GivenRow) {
  const key = givenKey(place, number);
  const { created, bytes } = await store.publish(key, encodeJson(row));
  return { created, row: parseStored(GivenRowSchema, decodeJson(bytes, key), key) };
}

/** Whether one takes the other's place: rewards of an attempt do whoever gives them, comparisons those of a reviewer. */
function isSameSubject(one: Gift, other: Gift): boolean {
  if (one.kind === 'reward') return other.kind === 'reward' && one.attempt === other.attempt;
  return other.kind === 'comparison' && one.left === other.left && one.right === other.right && one.by === other.by;
}

/** Whoever gives them, and why: the same request may be sent by another person. */
function isSameValue(one: Gift, other: Gift): boolean {
  if (one.kind === 'comparison') return one.answer === (other as ComparisonRow).answer;
  const { reward, metrics } = other as RewardRow;
  return one.reward === reward && isSameMetrics(one.metrics, metrics);
}

function isSameMetrics(one: RewardRow['metrics'] = {}, other: RewardRow['metrics'] = {}): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
