/** Conversations that were served and recorded, with their feedback. */
import { badConfig } from '../core/contract/failures.ts';
import { rewardOfConversation, type FeedbackRow } from '../store/records/production/feedback.ts';
import { nameCheckpoint } from '../store/records/runs/find-checkpoint.ts';
import { findPromoted } from '../store/records/runs/promotions.ts';
import {
  readConversation,
  readProduction,
  type ProductionSummary,
} from '../store/records/production/recorded-conversations.ts';
import type { Recording } from '../core/contract/records.ts';
import { requireRun } from '../store/records/runs/run-reader.ts';
import type { Place } from './operation.ts';

export interface FoundProduction extends Omit<ProductionSummary, 'rated'> {
  readonly run: string;
  /** The promoted checkpoint. */
  readonly production: string | null;
  /** Conversations with feedback, the newest feedback last. */
  readonly rated: readonly {
    readonly conversation: string;
    readonly answers: number;
    readonly reward: number | null;
    readonly trainedBy: string | null;
    readonly feedback: readonly FeedbackRow[];
  }[];
}

export interface FoundConversation {
  readonly run: string;
  readonly conversation: string;
  readonly trainedBy: string | null;
  readonly feedback: readonly FeedbackRow[];
  readonly answers: readonly Recording[];
}

export async function findProduction(place: Place, run: string): Promise<FoundProduction> {
  const store = await place.store();
  await requireRun(store, run);
  const { rated, ...counts } = await readProduction(store, run);
  const promoted = await findPromoted(store, run);
  return {
    run,
    production: promoted && (await nameCheckpoint(store, promoted.checkpoint)),
    ...counts,
    rated: rated.map((one) => ({
      conversation: one.conversation,
      answers: one.turns.length,
      reward: rewardOfConversation(one),
      trainedBy: one.trainedBy,
      feedback: one.rows,
    })),
  };
}

export async function findConversation(place: Place, run: string, id: string): Promise<FoundConversation> {
  const store = await place.store();
  await requireRun(store, run);
  const found = await readConversation(store, run, id);
  if (found === null)
    throw badConfig(
      `CONVERSATION must be recorded under ${run}, got ${JSON.stringify(id)}; temper production ${run} --json lists those with feedback`,
    );
  const { conversation, recordings, rated } = found;
  return { run, conversation, trainedBy: rated?.trainedBy ?? null, feedback: rated?.rows ?? [], answers: recordings };
}
