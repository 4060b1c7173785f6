/**
 * Feedback on recorded conversations, a ledger for each: the last row of an answer wins, and that of the conversation as a
 * whole. Whoever trains the conversation closes its ledger first, so that what was given and what was trained never differ.
 */
import pLimit from 'p-limit';
import { z } from 'zod';

import type { Recording } from '../../../core/contract/records.ts';
import { mean } from '../../../core/numbers/statistics.ts';
import { RECORD_SCHEMA } from '../../../core/contract/wire-constants.ts';
import { feedbackKey, feedbackPrefix } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { childNames, GROUPS_AT_ONCE } from '../children.ts';
import { tolerant } from '../file-schemas.ts';
import { Ledger } from '../ledger.ts';
import { conversationKeyOf } from './recording-ids.ts';
import { readRecordings } from './recordings.ts';

const common = { schema: z.literal(RECORD_SCHEMA), conversation: z.string(), at: z.iso.datetime() };

const FeedbackRow = z.strictObject({
  ...common,
  kind: z.literal('feedback'),
  /** Null: the conversation as a whole. */
  answer: z.string().nullable(),
  reward: z.number(),
  label: z.string().nullable(),
  comment: z.string().nullable(),
});
export type FeedbackRow = z.infer<typeof FeedbackRow>;
export type Feedback = Omit<FeedbackRow, keyof typeof common | 'kind'>;

/** A run trained the conversation with the rows before this one; there is none after it. */
const TrainedRow = z.strictObject({ ...common, kind: z.literal('trained'), run: z.string() });
type TrainedRow = z.infer<typeof TrainedRow>;

const RowSchema = tolerant(z.discriminatedUnion('kind', [FeedbackRow, TrainedRow]));
type Row = FeedbackRow | TrainedRow;

export type GivenFeedback =
  | { outcome: 'given' | 'repeated'; row: FeedbackRow }
  | { outcome: 'trained'; row: TrainedRow }
  | { outcome: 'full' };

/** A conversation may have so many rows: each feedback reads them all. */
export const MOST_ROWS = 1000;

const ledgerOf = (store: Store, run: string, conversationKey: string): Ledger<Row> =>
  new Ledger<Row>(store, RowSchema, (index) => feedbackKey(run, conversationKey, index));

/** The same feedback as the last one is no new row. */
export async function giveFeedback(
  store: Store,
  run: string,
  conversation: string,
  feedback: Feedback,
): Promise<GivenFeedback> {
  const at = new Date().toISOString();
  const row: FeedbackRow = { schema: RECORD_SCHEMA, kind: 'feedback', conversation, ...feedback, at };
  const ledger = ledgerOf(store, run, conversationKeyOf(conversation));
  const { rows, added } = await ledger.append((given) => (findAnswer(given, row) === null ? row : null));
  return added === null ? findAnswer(rows, row)! : { outcome: 'given', row };
}

/** Null if the row may be added. */
function findAnswer(rows: readonly Row[], row: FeedbackRow): GivenFeedback | null {
  const trained = findTrained(rows);
  if (trained !== undefined) return { outcome: 'trained', row: trained };
  const last = latest(rows, row.answer);
  if (last !== null && isSame(last, row)) return { outcome: 'repeated', row: last };
  return rows.length >= MOST_ROWS ? { outcome: 'full' } : null;
}

/** Ends the feedback of a conversation that `by` trains; returns the rows that count. The same run may ask again. */
export async function closeFeedback(
  store: Store,
  run: string,
  conversation: string,
  by: string,
): Promise<{ rows: FeedbackRow[]; trainedBy: string }> {
  const at = new Date().toISOString();
  const row: TrainedRow = { schema: RECORD_SCHEMA, kind: 'trained', conversation, run: by, at };
  const ledger = ledgerOf(store, run, conversationKeyOf(conversation));
  const { rows } = await ledger.append((given) => (findTrained(given) === undefined ? row : null));
  return { rows: rows.filter(isFeedback), trainedBy: findTrained(rows)!.run };
}

const findTrained = (rows: readonly Row[]): TrainedRow | undefined => rows.find((each) => each.kind === 'trained');

const isFeedback = (row: Row): row is FeedbackRow => row.kind === 'feedback';

function latest(rows: readonly Row[], answer: string | null): FeedbackRow | null {
  return rows.filter(isFeedback).findLast((row) => row.answer === answer) ?? null;
}

function isSame(left: FeedbackRow, right: FeedbackRow): boolean {
  return left.reward === right.reward && left.label === right.label && left.comment === right.comment;
}

/** A recorded answer with the feedback on it. */
interface RatedTurn {
  recording: Recording;
  /** The latest on this answer; null without any. */
  feedback: FeedbackRow | null;
}

export interface RatedConversation {
  conversation: string;
  /** In the order in which they were recorded. */
  turns: RatedTurn[];
  /** The latest on the conversation as a whole; null without any. */
  feedback: FeedbackRow | null;
  /** All of it, for the audit. */
  rows: FeedbackRow[];
  /** Run that trained it; null: none so far. */
  trainedBy: string | null;
}

/** Conversations with feedback, in the order of their first recorded answers. */
export async function readRatedConversations(store: Store, run: string): Promise<RatedConversation[]> {
  const keys = await childNames(store, feedbackPrefix(run));
  const limit = pLimit(GROUPS_AT_ONCE);
  const read = keys.map((key) => limit(async () => [key, await ledgerOf(store, run, key).read()] as const));
  const rows = new Map(await Promise.all(read));
  const recorded = new Map<string, Recording[]>();
  for await (const recording of readRecordings(store, run)) {
    const key = conversationKeyOf(recording.conversation);
    if (!rows.has(key)) continue;
    const turns = recorded.get(key) ?? [];
    recorded.set(key, turns);
    turns.push(recording);
  }
  const rated = [...recorded].map(([key, turns]) => rate(turns, rows.get(key)!));
  return rated.toSorted((left, right) => inTime(left.turns[0]!.recording, right.turns[0]!.recording));
}

/** Recordings of the same millisecond keep the order of chunks and their records, which never changes. */
function inTime(left: Recording, right: Recording): number {
  if (left.at === right.at) return 0;
  return left.at < right.at ? -1 : 1;
}

function rate(recordings: readonly Recording[], rows: readonly Row[]): RatedConversation {
  const ordered = recordings.toSorted(inTime);
  return {
    conversation: ordered[0]!.conversation,
    turns: ordered.map((recording) => ({ recording, feedback: latest(rows, recording.id) })),
    feedback: latest(rows, null),
    rows: rows.filter(isFeedback),
    trainedBy: findTrained(rows)?.run ?? null,
  };
}

/** The latest on the conversation as a whole, or else the mean of the latest on its answers; null without any. */
export function rewardOfConversation({
  feedback,
  turns,
}: Pick<RatedConversation, 'feedback' | 'turns'>): number | null {
  if (feedback !== null) return feedback.reward;
  return mean(turns.flatMap((turn) => turn.feedback?.reward ?? []));
}
