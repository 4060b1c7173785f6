/** Lines that `temper serve` prints when it is ready: address, names of the model, and example requests. */
import { FEEDBACK_KEY_VARIABLE, SERVE_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import { bearerWords, originOf, type KeyedPlace } from '../command-line/keyed-place.ts';
import type { RecordingPlan } from './plan-serve.ts';

export interface Served extends Pick<KeyedPlace, 'host' | 'port' | 'key' | 'isNewKey'> {
  readonly policy: string;
  readonly models: readonly string[];
  readonly adapterSha256: string;
  /** Null: nothing is recorded. */
  readonly recording: RecordingPlan | null;
}

export function servedJson(served: Served): object {
  const { policy, models, adapterSha256, recording } = served;
  const shown = {
    baseUrl: `${originOf(served)}/v1`,
    model: policy,
    models,
    adapterSha256,
    keyVariable: SERVE_KEY_VARIABLE,
  };
  if (recording === null) return shown;
  const { share, days, feedbackKey } = recording;
  return { ...shown, recording: { share, days, feedbackKeyVariable: feedbackKey && FEEDBACK_KEY_VARIABLE } };
}

export function servedLines(served: Served): string[] {
  const { policy, models, key, isNewKey } = served;
  const baseUrl = `${originOf(served)}/v1`;
  const [model] = models;
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  return [
    `${policy} is served; Ctrl-C stops it`,
    `base URL  ${baseUrl}`,
    `model     ${models.join(' or ')}`,
    `key       ${isNewKey ? `new at each start; set ${SERVE_KEY_VARIABLE} to choose one` : `in ${SERVE_KEY_VARIABLE}`}`,
    ...recordingLines(served),
    '',
    ...(isNewKey ? [`export ${SERVE_KEY_VARIABLE}=${key}`] : []),
    `curl ${baseUrl}/chat/completions ${bearerWords(SERVE_KEY_VARIABLE)} -H 'Content-Type: application/json' -d '${body}'`,
    '',
    `const client = new OpenAI({ baseURL: '${baseUrl}', apiKey: process.env.${SERVE_KEY_VARIABLE} });`,
    `await client.chat.completions.create({ model: '${model}', messages: [{ role: 'user', content: 'Hello' }] });`,
  ];
}

function recordingLines({ recording }: Served): string[] {
  if (recording === null) return [];
  const { share, days, feedbackKey, isNewKey } = recording;
  const which = share === 1 ? 'all conversations' : `${share * 100} % of the conversations`;
  const kept = days === null ? '' : `, kept for ${days} ${days === 1 ? 'day' : 'days'}`;
  const none = `closed; set ${FEEDBACK_KEY_VARIABLE} to open POST /v1/feedback`;
  const key = feedbackKey === null ? none : `POST /v1/feedback with the key in ${FEEDBACK_KEY_VARIABLE}`;
  return [
    `records   ${which}${kept}`,
    `feedback  ${key}`,
    ...(isNewKey ? [`export ${FEEDBACK_KEY_VARIABLE}=${feedbackKey}`] : []),
  ];
}
