/** Questions to a service that has scenarios, over HTTP with a key. What may pass is asked again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';

import { TemperError } from '../../core/failures.ts';

const ANSWER_MS = 60_000;
const TRIES = 6;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 120_000;

export interface Service {
  /** `Langfuse`. */
  readonly name: string;
  /** Without a slash at its end. */
  readonly url: string;
  /** Never shown. */
  readonly headers: Readonly<Record<string, string>>;
  /** Variables of the environment, for messages. */
  readonly keys: string;
}

export interface ServiceQuestion {
  /** Named in messages: `the data set support`. */
  readonly what: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent by POST. */
  readonly body?: object;
}

export async function askService<Schema extends z.ZodType>(
  service: Service,
  question: ServiceQuestion,
  schema: Schema,
): Promise<z.output<Schema>> {
  for (let tried = 1; ; tried++) {
    try {
      return await askOnce(service, question, schema);
    } catch (error) {
      if (!(error instanceof TemperError) || !error.retryable || tried === TRIES) throw error;
      await sleep(Math.min(error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tried - 1), LONGEST_PAUSE_MS));
    }
  }
}

async function askOnce<Schema extends z.ZodType>(service: Service, question: ServiceQuestion, schema: Schema) {
  const { name, keys } = service;
  const { what } = question;
  const { status, text, retryAfter } = await send(service, question);
  if (status === 429 || status >= 500) {
    const seconds = Number(retryAfter ?? Number.NaN);
    throw away(service, what, String(status), Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {});
  }
  if (status < 200 || status > 299) {
    const remedy = status === 401 || status === 403 ? `check ${keys}` : 'correct its name';
    throw new TemperError('BadConfig', `${name} must give ${what}, it answered ${status}; ${remedy}`);
  }
  return parsed(text, schema, service, what);
}

async function send(service: Service, { what, path, query = {}, body }: ServiceQuestion) {
  const { url, headers } = service;
  const search = new URLSearchParams(query).toString();
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  try {
    const response = await fetch(`${url}${path}${search === '' ? '' : `?${search}`}`, {
      ...sent,
      headers: { ...headers, ...type },
      // A key must not follow a redirect to another server.
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return { status: response.status, text: await response.text(), retryAfter: response.headers.get('retry-after') };
  } catch (cause) {
    throw away(service, what, `no answer (${reasonOf(cause)})`, { cause });
  }
}

function parsed<Schema extends z.ZodType>(text: string, schema: Schema, { name }: Service, what: string) {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    const rule = `${name} must give ${what} as its API describes it, its answer has another form`;
    throw new TemperError('BadConfig', `${rule}; check the address, and upgrade Temper or the server`, { cause });
  }
}

function away(
  { name }: Service,
  what: string,
  said: string,
  options: ConstructorParameters<typeof TemperError>[2],
): TemperError {
  const rule = `${name} must give ${what}, it answered ${said}`;
  return new TemperError('SourceUnavailable', `${rule}; check the network, and run the command again`, options);
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
