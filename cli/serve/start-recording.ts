/** Work of `temper serve --record` beside the server: writer, feedback, and retention. */
import { badConfig } from '../../core/contract/failures.ts';
import { RecordedAnswers } from '../../store/records/production/recorded-answers.ts';
import { RecordingWriter, removeRecordings } from '../../store/records/production/recordings.ts';
import type { RedactConversation } from '../../store/records/groups/served-conversation.ts';
import type { Store } from '../../store/store.ts';
import { AnswerRecorder } from '../../workers/serving/recording/answer-recorder.ts';
import { Conversations } from '../../workers/serving/recording/conversations.ts';
import { answerFeedback } from '../../workers/serving/recording/feedback-endpoint.ts';
import type { FeedbackOptions } from '../../workers/serving/serving-http.ts';
import { importDefault } from '../../workers/user-code/import-file.ts';
import type { RecordingPlan } from './plan-serve.ts';

export interface StartedRecording {
  readonly recorder: AnswerRecorder;
  readonly feedback: FeedbackOptions;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;
const RETENTION_EVERY_MS = 3_600_000;

/** `run`: under whose name it is recorded. */
export async function startRecording(
  store: Store,
  run: string,
  { share, days, redact, feedbackKey }: RecordingPlan,
  warn: (line: string) => void,
): Promise<StartedRecording> {
  await store.checkWritable();
  const redaction = redact === null ? null : await loadRedaction(redact);
  const [writer, answers] = [new RecordingWriter(store, run), new RecordedAnswers(store, run)];
  const conversations = new Conversations(share);
  const recorder = new AnswerRecorder({ writer, answers, conversations, redact: redaction, warn });
  const stopRetention = days === null ? () => undefined : keepFor(days, store, run, warn);
  return {
    recorder,
    feedback: {
      key: feedbackKey,
      answer: (body, takesNames) => answerFeedback(body, takesNames, { store, run, answers }),
    },
    async close() {
      stopRetention();
      await writer.close();
      await store.close();
    },
  };
}

async function loadRedaction(file: string): Promise<RedactConversation> {
  const exported = await importDefault(file);
  if (typeof exported === 'function') return exported as RedactConversation;
  throw badConfig(
    `--redact ${file} must have a default export (conversation) => conversation | null, got ${typeof exported}; correct the file`,
  );
}

/** Returns what ends it. A clock that was wrong at the start, or has jumped, has an hour to be set before anything goes. */
export function keepFor(days: number, store: Store, run: string, warn: (line: string) => void): () => void {
  let checkedAt = Date.now();
  const remove = (): void => {
    // oxlint-disable-next-line temper/durations -- it looks for a clock that was set
    const hasJumped = Math.abs(Date.now() - checkedAt) > 2 * RETENTION_EVERY_MS;
    checkedAt = Date.now();
    if (hasJumped) return;
    removeRecordings(store, run, Date.now() - days * DAY_MS).catch((error: unknown) =>
      warn(`old recordings were not removed: ${error instanceof Error ? error.message : String(error)}`),
    );
  };
  const timer = setInterval(remove, RETENTION_EVERY_MS).unref();
  return () => clearInterval(timer);
}
