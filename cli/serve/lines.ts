/** Lines that `temper serve` prints when it is ready: address, names of the model, and example requests. */
import { SERVE_KEY_VARIABLE, type ServePlace } from './plan-serve.ts';

export interface Served extends Pick<ServePlace, 'host' | 'port' | 'key' | 'isNewKey'> {
  readonly policy: string;
  readonly models: readonly string[];
  readonly adapterSha256: string;
}

/** Base URL for clients on this machine; a wildcard address includes loopback. */
function baseUrlOf({ host, port }: Served): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}/v1`;
}

export function servedJson(served: Served): object {
  const { policy, models, adapterSha256 } = served;
  return { baseUrl: baseUrlOf(served), model: policy, models, adapterSha256, keyVariable: SERVE_KEY_VARIABLE };
}

export function servedLines(served: Served): string[] {
  const { policy, models, key, isNewKey } = served;
  const baseUrl = baseUrlOf(served);
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
