/** Chats with checkpoints, base models and hosted models. Nothing of them is stored. */
import { PassThrough } from 'node:stream';
import { badConfig, showValue, type TemperError } from '../../../core/contract/failures.ts';
import { hostedAddress, nameMaxTokens } from '../../../play/connections/providers.ts';
import { AnsweredCalls } from '../../../play/recorder/canonical.ts';
import { checkRequest } from '../../../play/recorder/request.ts';
import type { ChatEvent, ChatRequest } from '../../../views/api/requests.ts';
import type { Engines, EnginesOptions } from './engines.ts';
import { findModel, type EngineModel, type HostedChatModel } from './find-model.ts';
import { streamChat, type StreamedQuestion } from '../../../play/transports/stream-chat.ts';

export interface UiChat {
  /** Ends with `end` or `error`; when `signal` is aborted, with neither. Never throws. */
  answer(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent>;
}

/** Tokens of one answer; a hosted model's answer has the default, so that a forgotten limit costs little. */
const TOKENS = { default: 1024, most: 32_768 } as const;
const HIGHEST_TEMPERATURE = 2;
const MOST_MESSAGES = 1000;

export function createChat(options: Pick<EnginesOptions, 'env' | 'store'>, engines: Engines): UiChat {
  return { answer: (request, signal) => answerOrSayWhy(request, signal, { ...options, engines }) };
}

interface Place extends Pick<EnginesOptions, 'env' | 'store'> {
  readonly engines: Engines;
}

async function* answerOrSayWhy(request: ChatRequest, signal: AbortSignal, place: Place): AsyncGenerator<ChatEvent> {
  // A reader that stops reading gives the answer up, too.
  const ending = new AbortController();
  try {
    yield* answer(request, AbortSignal.any([signal, ending.signal]), place);
  } catch (error) {
    if (!signal.aborted) yield { kind: 'error', text: error instanceof Error ? error.message : String(error) };
  } finally {
    ending.abort();
  }
}

async function* answer(request: ChatRequest, signal: AbortSignal, place: Place): AsyncGenerator<ChatEvent> {
  checkChat(request);
  const model = await findModel(place.store, request.model, place.env);
  if (model.kind === 'hosted') yield* streamChat(askHosted(request, model, signal));
  else yield* askEngine(request, model, signal, place);
}

async function* askEngine(
  request: ChatRequest,
  model: EngineModel,
  signal: AbortSignal,
  { engines }: Place,
): AsyncGenerator<ChatEvent> {
  const address = yield* tellWhile((tell) => engines.open(model, tell, signal));
  const { title } = model;
  yield* streamChat({ title, address, body: engineBody(request, model), isAwaited: true, signal });
}

/** Request of an evaluation: the run's chat template, and its settings where the chat has none. */
function engineBody({ messages, temperature, maxTokens }: ChatRequest, { model, rollout }: EngineModel): object {
  const asked = {
    model,
    messages: [...messages],
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  };
  const rules = { model, mode: 'eval', rollout, answered: new AnsweredCalls(), boundsTokens: false } as const;
  const { request } = checkRequest(asked, rules);
  return { ...request, model, stream_options: { include_usage: true } };
}

function askHosted(request: ChatRequest, { title, hosted }: HostedChatModel, signal: AbortSignal): StreamedQuestion {
  const { messages, temperature, maxTokens = TOKENS.default } = request;
  const asked = { model: hosted.model, messages, ...(temperature !== undefined && { temperature }) };
  const body = nameMaxTokens(hosted, asked, maxTokens);
  return { title, address: hostedAddress(hosted), body, isAwaited: false, signal };
}

function checkChat({ model, messages, temperature = 1, maxTokens = TOKENS.default }: ChatRequest): void {
  if (typeof model !== 'string' || model === '') throw refused('model', 'must be the name of a model', model);
  checkMessages(messages);
  if (!(temperature >= 0 && temperature <= HIGHEST_TEMPERATURE))
    throw refused('temperature', `must be from 0 to ${HIGHEST_TEMPERATURE}`, temperature);
  if (!Number.isInteger(maxTokens) || maxTokens < 1 || maxTokens > TOKENS.most)
    throw refused('maxTokens', `must be a whole number from 1 to ${TOKENS.most}`, maxTokens);
}

function checkMessages(messages: ChatRequest['messages']): void {
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > MOST_MESSAGES)
    throw refused('messages', `must be a list of 1 to ${MOST_MESSAGES} messages`, messages?.length);
  const wrong = messages.find(
    ({ role, content }) => !['system', 'user', 'assistant'].includes(role) || typeof content !== 'string',
  );
  if (wrong !== undefined) throw refused('each message', 'must have a role and a text as content', wrong);
}

function refused(name: string, rule: string, value: unknown): TemperError {
  return badConfig(`${name} of a chat ${rule}, got ${showValue(value)}; change it`);
}

/** Passes on what the work waits for while it goes on. */
async function* tellWhile<T>(work: (tell: (text: string) => void) => Promise<T>): AsyncGenerator<ChatEvent, T> {
  const texts = new PassThrough({ objectMode: true });
  const done = work((text) => {
    if (texts.writable) texts.write(text);
  }).finally(() => texts.end());
  // Awaited below.
  done.catch(() => undefined);
  for await (const text of texts) yield { kind: 'waiting', text: String(text) };
  return done;
}
