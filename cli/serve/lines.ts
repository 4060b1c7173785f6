/** Lines that `temper serve` prints when it is ready: address, names of the model, and example requests. */
import { originOf, type KeyedPlace } from '../command-line/keyed-place.ts';
import { SERVE_KEY_VARIABLE } from './command.ts';

export interface Served extends Pick<KeyedPlace, 'host' | 'port' | 'key' | 'isNewKey'> {
  readonly policy: string;
  readonly models: readonly string[];
  readonly adapterSha256: string;
}

export function servedJson(served: Served): object {
  const { policy, models, adapterSha256 } = served;
  return { baseUrl: `${originOf(served)}/v1`, model: policy, models, adapterSha256, keyVariable: SERVE_KEY_VARIABLE };
}

export function servedLines(served: Served): string[] {
  const { policy, models, key, isNewKey } = served;
  const baseUrl = `${originOf(served)}/v1`;
  const body = JSON.stringify({ model: policy, messages: [{ role: 'user', content: 'Hello' }] });
  return [
    `${policy} is served; Ctrl-C stops it`,
    `base URL  ${baseUrl}`,
    `model     ${models.join(' or ')}`,
    `key       ${isNewKey ? `new at each start; set ${SERVE_KEY_VARIABLE} to choose one` : `in ${SERVE_KEY_VARIABLE}`}`,
    '',
    ...(isNewKey ? [`export ${SERVE_KEY_VARIABLE}=${key}`] : []),
    `curl ${baseUrl}/chat/completions -H "Authorization: Bearer $${SERVE_KEY_VARIABLE}" -H 'Content-Type: application/json' -d '${body}'`,
    '',
    `const client = new OpenAI({ baseURL: '${baseUrl}', apiKey: process.env.${SERVE_KEY_VARIABLE} });`,
    `await client.chat.completions.create({ model: '${policy}', messages: [{ role: 'user', content: 'Hello' }] });`,
  ];
}
