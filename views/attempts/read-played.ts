/** Reads what was played: a group's attempts with their verdict, times and given rewards. */
import { isAwaited } from '../../core/rules/external-rewards.ts';
import { readStored, TimesFileSchema, type TimesFile } from '../../store/records/file-schemas.ts';
import { givenIn, readGiven, type GivenRow } from '../../store/records/rewards/given-rewards.ts';
import { readVerdict } from '../../store/records/groups/group-files.ts';
import { callOrder, checkRollouts } from '../../store/records/runs/run-reader.ts';
import {
  decodeRollouts,
  decodeWithNumbersOf,
  decodeWithoutNumbers,
  type AttemptRecord,
  type CallRecord,
  type Judged,
  type Rollouts,
} from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { NotFound } from '../context/context.ts';
import { filesOf, groupIdOf, type PlayPlace } from './place.ts';

export interface PlayedRecords {
  readonly place: PlayPlace;
  /** Records as they are stored: calls in the order of the record. */
  readonly rollouts: Rollouts;
  /** Null: not judged yet, or no group of training. */
  readonly judged: Judged | null;
  readonly judgedSha256: string | null;
  readonly times: TimesFile | null;
  /** Rewards and comparisons from outside, oldest first. */
  readonly givenRows: readonly GivenRow[];
}

type CallSpan = readonly [asked: number, answered: number];

/** One call in playing order. */
export interface PlayedCall {
  readonly call: CallRecord;
  /** Index in the record. */
  readonly index: number;
  /** Milliseconds since 1970; null if the store does not tell. */
  readonly time: CallSpan | null;
}

/** Attempts whose prompts' tokens and log-probabilities are read: rows need those of none, a page those of its own. */
type NumbersOf = 'all' | 'none' | number;

export async function readPlayed(
  store: Store,
  place: PlayPlace,
  numbersOf: NumbersOf = 'all',
): Promise<PlayedRecords | null> {
  const files = filesOf(place);
  const stored = await readRecords(store, files.rollouts, numbersOf);
  if (stored === null) return null;
  const rollouts = checkRollouts(stored, files.rollouts);
  const times = files.times === null ? null : await readStored(store, files.times, TimesFileSchema);
  const verdict = place.kind === 'group' ? await readVerdict(store, place) : null;
  const givenRows = place.kind === 'group' ? await readGivenRows(store, place, verdict?.judged ?? null) : [];
  return { place, rollouts, judged: verdict?.judged ?? null, judgedSha256: verdict?.sha256 ?? null, times, givenRows };
}

async function readRecords(store: Store, key: string, numbersOf: NumbersOf): Promise<Rollouts | null> {
  const bytes = await store.read(key);
  if (bytes === null) return null;
  if (numbersOf === 'all') return decodeRollouts(bytes, key);
  return numbersOf === 'none' ? decodeWithoutNumbers(bytes, key) : decodeWithNumbersOf(numbersOf, bytes, key);
}

export async function requirePlayed(
  store: Store,
  place: PlayPlace,
  numbersOf: NumbersOf = 'all',
): Promise<PlayedRecords> {
  const played = await readPlayed(store, place, numbersOf);
  if (played !== null) return played;
  throw new NotFound(`run ${place.run} has no attempts of ${groupIdOf(place)} in the store ${store.uri}`);
}

/** Rows, as far as the group may have any. */
async function readGivenRows(
  store: Store,
  place: PlayPlace & { kind: 'group' },
  judged: Judged | null,
): Promise<GivenRow[]> {
  return judged !== null && !isAwaited(judged.judge) ? [] : givenIn(await readGiven(store, place));
}

export function playedCalls(record: AttemptRecord, times: TimesFile | null): PlayedCall[] {
  const timed = times?.attemptTimes?.[record.attempt]?.calls;
  const isTimed = timed?.length === record.calls.length;
  return callOrder(record, times).map((index, turn) => ({
    call: record.calls[index]!,
    index,
    time: isTimed ? (timed[turn] ?? null) : null,
  }));
}
