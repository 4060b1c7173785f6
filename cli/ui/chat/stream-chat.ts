/** One streamed answer of an OpenAI-compatible server. What the model wrote is passed on as text and nothing else. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LineSplitter } from '../../../core/text/lines.ts';
import { TemperError } from '../../../core/contract/failures.ts';
import { readBoundedText } from '../../../core/text/read-bounded.ts';
import { MAX_ANSWER_BYTES } from '../../../core/contract/wire-constants.ts';
import { chatUrl, type EngineAddress } from '../../../play/connections/engine-connection.ts';
import { readUsed } from '../../../play/connections/providers.ts';
import { excerpt } from '../../../play/connections/ask-model.ts';
import type { ChatEvent } from '../../../views/api/requests.ts';

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

const RETRY_MS = 500;
const LOADS_WITHIN_MS = 600_000;
const LOADING: readonly number[] = [429, 503];

export async function* streamChat(asked: StreamedQuestion): AsyncGenerator<ChatEvent> {
  const response = yield* openStream(asked);
  const answer = new StreamedAnswer();
  for await (const line of linesOf(response)) yield* answer.read(line, asked.title);
  yield { kind: 'end', finishReason: answer.finishReason, tokens: answer.tokens };
}

/** Waits for a server that loads the model. */
async function* openStream(asked: StreamedQuestion): AsyncGenerator<ChatEvent, Response> {
  const until = performance.now() + LOADS_WITHIN_MS;
  let told = '';
  for (;;) {
    const response = await post(asked);
    if (response.ok) return response;
    const text = excerpt(await readBoundedText(response));
    const reason = `${asked.title} refused with ${response.status}: ${text || 'no reason'}`;
    if (!asked.isAwaited || !LOADING.includes(response.status) || performance.now() > until)
      throw new TemperError('EngineFailed', reason);
    if (told !== reason) yield { kind: 'waiting', text: `waiting for ${asked.title}: ${text}` };
    told = reason;
    await sleep(RETRY_MS, undefined, { signal: asked.signal });
  }
}

async function post({ title, address, body, signal }: StreamedQuestion): Promise<Response> {
  const headers = {
    'content-type': 'application/json',
    ...(address.key !== null && { authorization: `Bearer ${address.key}` }),
  };
  try {
    // Prompts and keys go to the address that was configured, never to one that an answer names.
    const redirect = 'manual' as const;
    return await fetch(chatUrl(address), {
      method: 'POST',
      headers,
      redirect,
      signal,
      body: JSON.stringify({ ...body, stream: true }),
    });
  } catch (cause) {
    if (signal.aborted) throw cause;
    const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause);
    const message = `${title} cannot be reached at ${new URL(address.url).host} (${reason}); check that its server runs`;
    throw new TemperError('EngineFailed', message, { cause });
  }
}

async function* linesOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return;
  const splitter = new LineSplitter();
  const decoder = new TextDecoder();
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES)
      throw new TemperError(
        'EngineFailed',
        `an answer may have ${MAX_ANSWER_BYTES / 1024 ** 2} MiB, it has more; lower the token limit`,
      );
    yield* splitter.push(decoder.decode(chunk, { stream: true }));
  }
  yield* splitter.push(`${decoder.decode()}\n`);
}

interface ChunkChoice {
  readonly delta?: { readonly content?: unknown } | null;
  readonly finish_reason?: unknown;
}

interface Chunk {
  readonly choices?: readonly ChunkChoice[];
  readonly usage?: unknown;
  readonly error?: { readonly message?: unknown } | null;
}

class StreamedAnswer {
  finishReason: string | null = null;
  tokens: number | null = null;

  *read(line: string, title: string): Generator<ChatEvent> {
    const data = line.startsWith('data:') ? line.slice('data:'.length).trim() : '';
    if (data === '' || data === '[DONE]') return;
    const { choices = [], usage, error } = parseChunk(data, title);
    if (error) throw new TemperError('EngineFailed', `${title} gave up: ${excerpt(data)}`);
    this.tokens = readUsed(usage).completionTokens ?? this.tokens;
    for (const choice of choices) yield* this.#readChoice(choice);
  }

  *#readChoice({ delta, finish_reason: reason }: ChunkChoice): Generator<ChatEvent> {
    const text = delta?.content;
    if (typeof text === 'string' && text !== '') yield { kind: 'text', text };
    if (typeof reason === 'string') this.finishReason = reason;
  }
}

function parseChunk(data: string, title: string): Chunk {
  try {
    return (JSON.parse(data) ?? {}) as Chunk;
  } catch (cause) {
    throw new TemperError('EngineFailed', `${title} sent an event that is no JSON: ${data.slice(0, 100)}; ask again`, {
      cause,
    });
  }
}
