/** Retention of what `temper serve --record` keeps: recordings, and the feedback and names that are as old. */
import {
  conversationFeedbackPrefix,
  feedbackPrefix,
  namedConversationsPrefix,
  recordingChunkPrefix,
} from '../layout.ts';
import type { Store } from '../store.ts';
import { startOfChunk } from './recording-ids.ts';
import { CHUNK_LIMITS, listChunks } from './recordings.ts';

/** Resolves to the number of chunks that went. */
export async function removeRecordings(store: Store, run: string, beforeMs: number): Promise<number> {
  const wholeMs = beforeMs - CHUNK_LIMITS.ageMs;
  const old = (await listChunks(store, run)).filter((chunk) => startOfChunk(chunk) <= wholeMs);
  for (const chunk of old) await store.removeFolder(recordingChunkPrefix(run, chunk));
  // Not before the recordings that they are of: a chunk stays until all of it is old.
  await removeFeedback(store, run, wholeMs);
  for await (const name of store.describe(namedConversationsPrefix(run)))
    if (name.modifiedAtMs < wholeMs) await store.removeUnchanged(name);
  return old.length;
}

/** Whole conversations: a gap in their numbers would be filled again. */
async function removeFeedback(store: Store, run: string, beforeMs: number): Promise<void> {
  const newest = new Map<string, number>();
  for await (const { key, modifiedAtMs } of store.describe(feedbackPrefix(run))) {
    const conversation = key.slice(feedbackPrefix(run).length + 1).split('/')[0]!;
    newest.set(conversation, Math.max(modifiedAtMs, newest.get(conversation) ?? 0));
  }
  for (const [conversation, modifiedAtMs] of newest)
    if (modifiedAtMs < beforeMs) await store.removeFolder(conversationFeedbackPrefix(run, conversation));
}
