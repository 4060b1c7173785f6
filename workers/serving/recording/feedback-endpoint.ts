/** `POST /v1/feedback`: what people think of recorded answers and conversations. */
import { z } from 'zod';

import { parseJson } from '../../../core/text/json-text.ts';
import { firstIssue } from '../../../core/contract/contract.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { HttpRefusal } from '../../../play/transports/http-server.ts';
import { giveFeedback, MOST_ROWS } from '../../../store/records/production/feedback.ts';
import { isGivenId } from '../../../store/records/production/recording-ids.ts';
import type { RecordedAnswers } from '../../../store/records/production/recorded-answers.ts';
import type { Store } from '../../../store/store.ts';

export const FEEDBACK_PATH = '/v1/feedback';
/** The model's key beside that of feedback. */
export const SERVE_KEY_HEADER = 'x-temper-serve-key';

/** Rewards of the labels that a thumb gives. */
const FEEDBACK_LABELS = { thumbs_up: 1, thumbs_down: 0 } as const;
type Label = keyof typeof FEEDBACK_LABELS;

const MOST_COMMENT_CHARACTERS = 10_000;
const FeedbackBody = z.strictObject({
  id: z.string().min(1).max(1000),
  reward: z.number().min(-1).max(1).nullish(),
  label: z.enum(Object.keys(FEEDBACK_LABELS) as [Label, ...Label[]]).nullish(),
  comment: z.string().max(MOST_COMMENT_CHARACTERS).nullish(),
});

export interface FeedbackEndpointOptions {
  readonly store: Store;
  readonly run: string;
  readonly answers: RecordedAnswers;
}

/** `takesNames`: the client may rate conversations by its own names, which others could guess. Resolves to the answer's body. */
export async function answerFeedback(
  text: string,
  takesNames: boolean,
  options: FeedbackEndpointOptions,
): Promise<object> {
  try {
    return await rate(text, takesNames, options);
  } catch (error) {
    if (!(error instanceof TemperError && error.type === 'StoreUnavailable')) throw error;
    throw new HttpRefusal(503, `${error.message}; send the feedback again`, 'store_unavailable');
  }
}

async function rate(text: string, takesNames: boolean, options: FeedbackEndpointOptions): Promise<object> {
  const { store, run, answers } = options;
  const { id, reward, label, comment } = parseFeedback(text);
  const isTaken = takesNames || isGivenId(id);
  const place = isTaken ? await answers.find(id) : null;
  if (place === null) {
    const own = isTaken ? '' : `, and a name of your own needs the model's key in ${SERVE_KEY_HEADER}`;
    const reason = `only answers and conversations that temper serve --record kept can be rated${own}`;
    throw new HttpRefusal(404, `id ${shown(id)} is not recorded under ${run}; ${reason}`, 'not_found');
  }
  const { conversation, answer } = place;
  const given = await giveFeedback(store, run, conversation, { answer, reward, label, comment });
  if (given.outcome === 'trained')
    throw new HttpRefusal(
      409,
      `the conversation of ${shown(id)} was trained by the run ${given.row.run}, so its feedback is closed; rate a later one`,
      'already_trained',
    );
  if (given.outcome === 'full')
    throw new HttpRefusal(
      409,
      `the conversation of ${shown(id)} must have at most ${MOST_ROWS} rows of feedback, and has them; rate another one`,
      'too_much_feedback',
    );
  const { at } = given.row;
  return { object: 'feedback', id, conversation, reward, label, comment, at, repeated: given.outcome === 'repeated' };
}

interface ParsedFeedback {
  id: string;
  reward: number;
  label: Label | null;
  comment: string | null;
}

function parseFeedback(text: string): ParsedFeedback {
  const parsed = FeedbackBody.safeParse(parseJson(text));
  if (!parsed.success)
    throw invalid(`the body must be { id, reward or label, comment? } (${firstIssue(parsed.error)})`);
  const { id, reward = null, label = null, comment = null } = parsed.data;
  if ((reward === null) === (label === null)) throw invalid('either reward or label must be given, and not both');
  return { id, reward: reward ?? FEEDBACK_LABELS[label!], label, comment };
}

const shown = (id: string): string => JSON.stringify(id.slice(0, 80));

function invalid(rule: string): HttpRefusal {
  const labels = Object.keys(FEEDBACK_LABELS).join(' or ');
  return new HttpRefusal(422, `${rule}; send {"id": "chatcmpl-…", "reward": 1}, or a label (${labels})`, 'invalid');
}
