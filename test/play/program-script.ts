/** Programs of Node's, as text, with a model's client of a few lines. */
import { command } from '../../sdk/index.ts';

const PRELUDE = `
const env = process.env;
const post = (path, body, more = {}) => fetch(env.OPENAI_BASE_URL.replace('/v1', '') + path, {
  method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body),
  headers: { authorization: 'Bearer ' + env.OPENAI_API_KEY, 'content-type': 'application/json' }, ...more });
const ask = async (content, more = {}) => {
  const body = { model: env.TEMPER_MODEL, messages: [{ role: 'user', content }], ...more };
  return (await post('/v1/chat/completions', body)).json();
};
const say = async (content, more) => (await ask(content, more)).choices[0].message.content;
`;

export const script = (text: string, options = {}) =>
  command([process.execPath, '--input-type=module', '-e', PRELUDE + text], options);

/** Real processes have real time. */
export const ROLLOUT = { attemptTimeoutMs: 20_000, callTimeoutMs: 10_000 };
