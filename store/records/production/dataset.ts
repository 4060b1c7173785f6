/**
 * Conversations that a run trains: chosen once, ended for further feedback, and kept as one blob in the format of an
 * evaluation's attempts, so that the run needs nothing else of the recordings.
 */
import pLimit from 'p-limit';

import type { BlobRef, ProductionConfig } from '../../../core/contract/contract.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import type { Store } from '../../store.ts';
import { GROUPS_AT_ONCE } from '../children.ts';
import { closeFeedback, readRatedConversations } from './feedback.ts';
import { chooseConversations, toAttempts, type ChosenConversations, type ChoiceRules } from './choice.ts';
import { decodeRollouts, encodeRollouts, type AttemptRecord } from '../groups/trajectories.ts';

/** Conversations with feedback that a run may train now. Changes nothing. */
export async function chooseRecorded(store: Store, served: string, rules: ChoiceRules): Promise<ChosenConversations> {
  return chooseConversations(await readRatedConversations(store, served), rules);
}

/**
 * Ends the feedback of chosen conversations and stores them; null if other runs have taken all of them meanwhile. A
 * repetition under the same run's name finds its own again.
 */
export async function takeRecorded(store: Store, served: string, rules: ChoiceRules): Promise<ProductionConfig | null> {
  const { conversations } = await chooseRecorded(store, served, rules);
  const limit = pLimit(GROUPS_AT_ONCE);
  const close = ({ conversation }: (typeof conversations)[number]) =>
    limit(async () => (await closeFeedback(store, served, conversation, rules.run)).trainedBy === rules.run);
  const isTaken = await Promise.all(conversations.map(close));
  const taken = new Set(conversations.flatMap(({ conversation }, index) => (isTaken[index] ? [conversation] : [])));
  // Chosen again: what was given until a conversation was ended counts, and it may have gone on with another policy.
  const { conversations: ended, leftOut } = await chooseRecorded(store, served, rules);
  const attempts = ended.filter(({ conversation }) => taken.has(conversation)).flatMap(toAttempts);
  if (attempts.length === 0) return null;
  const recordings = await store.putBlob(await encodeDataset(attempts));
  return { run: served, recordings, conversations: attempts.length, samplers: samplersOf(attempts, rules), leftOut };
}

/** Its name is the hash of the attempts: no step has played them. */
async function encodeDataset(attempts: readonly AttemptRecord[]): Promise<Uint8Array> {
  const numbered = attempts.map((attempt, index) => ({ ...attempt, attempt: index, scenario: index }));
  const header = { inputsSha256: hashOf(numbered), branch: 0, step: 0, adapterSha256: null, attempts: numbered.length };
  return encodeRollouts({ header: { schema: 1, ...header }, attempts: numbered });
}

function samplersOf(attempts: readonly AttemptRecord[], { ancestors }: ChoiceRules): ProductionConfig['samplers'] {
  const names = new Set(attempts.map(samplerOf));
  return [...ancestors].flatMap(([adapterSha256, sampler]) => (names.has(adapterSha256) ? [sampler] : []));
}

/** Hash of the adapter that answered. */
export function samplerOf({ calls }: AttemptRecord): string {
  return calls[0]?.adapterSha256 ?? '';
}

/** In the order in which steps deal them. */
export async function readConversations(store: Store, recordings: BlobRef): Promise<AttemptRecord[]> {
  return (await decodeRollouts(await store.getBlob(recordings), recordings.key)).attempts;
}
