/** One attempt by a server of the user's: it is told what a command finds in its environment, and answers with the reward. */
import { request } from 'undici';

import { TemperError } from '../../core/failures.ts';
import type { AttemptEndpoint } from '../transports/gateway.ts';
import type { ProgramAttempt, ToldResult } from './program-attempt.ts';
import { ProgramError, type EndpointProgram } from './program.ts';

const MAX_ANSWER_BYTES = 1024 ** 2;
/** The server, or a proxy before it, is away or overloaded. */
const AWAY = new Set([408, 425, 429, 502, 503, 504]);

export async function askEndpoint(
  { url }: EndpointProgram,
  attempt: ProgramAttempt,
  { origin, key }: AttemptEndpoint,
): Promise<ToldResult> {
  const { scenario, resources, model, seed, temperature, recorder } = attempt;
  const addresses = { baseURL: `${origin}/v1`, anthropicBaseURL: origin, apiKey: key };
  const told = { scenario, ...(resources && { resources }), model, seed, temperature, ...addresses };
  const { status, text } = await post(url, JSON.stringify(told), recorder.ending.signal);
  if (status >= 200 && status < 300) return { text: text.trim() === '' ? null : text, where: `the answer of ${url}` };
  const shown = text.slice(0, 1000).replaceAll(key, '<key>').replaceAll(origin, 'http://gateway');
  if (AWAY.has(status)) throw away(url, `it answered ${status}: ${shown}`);
  throw new ProgramError(`${url} answered ${status}: ${shown}`);
}

async function post(url: string, body: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
  try {
    const answer = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body,
      signal,
      // The attempt's own time is the limit.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { status: answer.statusCode, text: await readText(answer.body, url) };
  } catch (error) {
    if (error instanceof ProgramError) throw error;
    signal.throwIfAborted();
    throw away(url, error instanceof Error && error.message !== '' ? error.message : 'connection refused');
  }
}

async function readText(body: AsyncIterable<Buffer>, url: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new ProgramError(`the answer of ${url} may have ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function away(url: string, reason: string): TemperError {
  return new TemperError(
    'ProgramFailed',
    `${url} did not play an attempt (${reason}); start it, the attempt is played again`,
  );
}
