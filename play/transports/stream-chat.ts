/** One streamed answer of an OpenAI-compatible server. What the model wrote is passed on as text and nothing else. */
import { setTimeout as sleep } from 'node:timers/promises';
import { APIConnectionError, APIError, type OpenAI } from 'openai';
import { TemperError } from '../../core/contract/failures.ts';
import { MAX_ANSWER_BYTES } from '../../core/contract/wire-constants.ts';
import { chatUrl, type EngineAddress } from '../connections/engine-connection.ts';
import { readUsed } from '../connections/providers.ts';
import type { Fetch } from './fetch.ts';
import { createOpenAIClient } from './model-client.ts';

export interface StreamedQuestion {
  /** For people. */
  readonly title: string;
  readonly address: EngineAddress;
  /** Without `stream`. */
  readonly body: object;
  /** True: 429 and 503 mean that it loads, and the request is sent again. */
  readonly isAwaited: boolean;
  readonly signal: AbortSignal;
}

type StreamedPart =
  | { readonly kind: 'waiting' | 'text'; readonly text: string }
  | { readonly kind: 'end'; readonly finishReason: string | null; readonly tokens: number | null };

const RETRY_MS = 500;
const LOADS_WITHIN_MS = 600_000;
const LOADING: readonly unknown[] = [429, 503];

export async function* streamChat(asked: StreamedQuestion): AsyncGenerator<StreamedPart> {
  let finishReason: string | null = null;
  let tokens: number | null = null;
  try {
    for await (const { choices = [], usage } of yield* openStream(asked)) {
      tokens = readUsed(usage).completionTokens ?? tokens;
      for (const { delta, finish_reason: reason } of choices) {
        if (delta?.content) yield { kind: 'text', text: delta.content };
        finishReason = reason ?? finishReason;
      }
    }
    // A stream that is aborted ends without an error.
    asked.signal.throwIfAborted();
  } catch (error) {
    throw asked.signal.aborted ? error : failureOf(error, asked);
  }
  yield { kind: 'end', finishReason, tokens };
}

type Request = OpenAI.ChatCompletionCreateParamsStreaming;

/** Waits for a server that loads the model. */
async function* openStream({ title, address, body, isAwaited, signal }: StreamedQuestion) {
  const until = performance.now() + LOADS_WITHIN_MS;
  const { chat } = clientOf(address);
  let told = '';
  for (;;) {
    try {
      return await chat.completions.create({ ...body, stream: true } as Request, { signal });
    } catch (error) {
      const isLoading = error instanceof APIError && LOADING.includes(error.status);
      if (!isAwaited || !isLoading || performance.now() > until) throw error;
      const text = reasonOf(error);
      if (told !== text) yield { kind: 'waiting', text: `waiting for ${title}: ${text}` } as const;
      told = text;
    }
    await sleep(RETRY_MS, undefined, { signal });
  }
}

/** Prompts and keys go to the address that was configured, never to one that an answer or the environment names. */
function clientOf(address: EngineAddress): OpenAI {
  const options = {
    baseURL: new URL('..', chatUrl(address)).href.replace(/\/$/, ''),
    apiKey: address.key ?? 'none',
    organization: null,
    project: null,
    logLevel: 'off',
    fetchOptions: { redirect: 'manual' },
    defaultHeaders: { ...address.headers, ...(address.key === null && { authorization: null }) },
  } as const;
  return createOpenAIClient(options, boundedFetch);
}

const NEWLINE = 10;
/** The client copies what it has of a line with each part that comes. */
const MAX_LINE_BYTES = 4 * 1024 ** 2;
const TOO_LONG = `an answer may have ${MAX_ANSWER_BYTES / 1024 ** 2} MiB, and a line of it ${MAX_LINE_BYTES / 1024 ** 2} MiB, it has more; lower the token limit`;

/** The client itself sets no bound. */
const boundedFetch: Fetch = async (url, init) => {
  const response = await fetch(url, init);
  let [bytes, ofLine] = [0, 0];
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const ended = chunk.lastIndexOf(NEWLINE) + 1;
      bytes += chunk.byteLength;
      ofLine = ended > 0 ? chunk.byteLength - ended : ofLine + chunk.byteLength;
      if (bytes > MAX_ANSWER_BYTES || ofLine > MAX_LINE_BYTES) throw new TemperError('EngineFailed', TOO_LONG);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body?.pipeThrough(counted) ?? null, response);
};

const MOST_LENGTH = 500;

/** Without the status, which the client puts before it. */
function reasonOf({ message, status }: APIError): string {
  return message.replace(`${status} `, '').slice(0, MOST_LENGTH);
}

function failureOf(cause: unknown, { title, address }: StreamedQuestion): unknown {
  let message = '';
  if (cause instanceof APIConnectionError)
    message = `${title} cannot be reached at ${chatUrl(address).host} (${rootOf(cause)}); check that its server runs`;
  else if (cause instanceof APIError)
    message = `${title} ${cause.status === undefined ? 'gave up' : `refused with ${cause.status}`}: ${reasonOf(cause)}`;
  else if (cause instanceof SyntaxError)
    message = `${title} sent an event that is no JSON (${cause.message}); ask again`;
  else return cause;
  return new TemperError('EngineFailed', message, { cause });
}

function rootOf(error: Error): string {
  return error.cause instanceof Error ? rootOf(error.cause) : error.message;
}
