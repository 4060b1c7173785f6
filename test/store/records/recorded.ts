/** Recorded conversations for tests: what `temper serve --record` and feedback leave in a store. */
import { giveFeedback } from '../../../store/records/production/feedback.ts';
import { RecordingWriter, type NewRecording } from '../../../store/records/production/recordings.ts';
import type { CallRecord } from '../../../store/records/groups/trajectories.ts';
import type { Store } from '../../../store/store.ts';
import { callOf, user } from './made-attempt.ts';

export const recordedCall = (adapterSha256: string, changes: Partial<CallRecord> = {}): CallRecord => {
  const tokens = { promptTokenIds: [1, 2, 3], tokenIds: [4, 5], logprobs: [-0.5, -0.25] };
  return callOf([user('hello')], 'hi', { key: 'k', ...tokens, adapterSha256, ...changes });
};

export type Told = Partial<NewRecording> & { call: CallRecord };

/** Records the turns of one conversation in order; returns its name and the ids of its answers. */
export async function record(store: Store, run: string, turns: readonly Told[]) {
  const writer = new RecordingWriter(store, run);
  const answers: string[] = [];
  let conversation: string | null = null;
  for (const turn of turns) {
    const usual = { conversation, api: 'chat/completions', policy: `${run}@1`, untrainable: null };
    const recording = await writer.append({ ...usual, ...turn });
    ({ conversation } = recording);
    answers.push(recording.id);
  }
  await writer.close();
  return { conversation: conversation ?? '', answers };
}

/** `answer`: null for the conversation as a whole. */
export async function rate(
  store: Store,
  run: string,
  conversation: string,
  reward: number,
  answer: string | null = null,
) {
  return giveFeedback(store, run, conversation, { answer, reward, label: null, comment: null });
}
