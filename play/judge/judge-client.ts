/** A judge as something that answers: the official client, pointed at a provider or at the run's own engine. */
import OpenAI from 'openai';

import { badConfig, TemperError } from '../../core/contract/failures.ts';
import type { JudgeAnswer } from '../../store/records/judging/verdicts.ts';
import { clientFor } from '../connections/providers.ts';
import type { EngineConnection } from '../connections/engine-connection.ts';
import type { Fetch } from '../transports/fetch.ts';
import { createOpenAIClient, NO_TIMEOUT_MS } from '../transports/model-client.ts';
import { judgeUrl, priceOf, requireJudgeKey, type EngineJudge, type HostedJudge } from './judge-model.ts';
import type { Ruler } from './ruler.ts';

export interface JudgeMessage {
  readonly role: 'system' | 'user';
  readonly content: string;
}

export interface Judge {
  /** For people. */
  readonly name: string;
  /** Answered by the GPU worker, whose errors say what failed; not by a provider. */
  readonly isOnEngine: boolean;
  /** Rejects with an `OpenAI.APIError` that has status and headers; any other error is an outage. */
  ask(messages: readonly JudgeMessage[], options: AskOptions): Promise<JudgeAnswer>;
}

interface AskOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The engine, and what it must answer with: null for a base model. */
export interface JudgingEngine {
  readonly connection: EngineConnection;
  readonly adapterSha256: string | null;
}

type Body = Partial<OpenAI.Chat.ChatCompletion> & { adapter_sha256?: string | null };

/** A judge, and by what its verdicts are known: a checkpoint by its adapter's hash, for its name may stand for another one elsewhere. */
export interface OpenJudge {
  readonly judge: Judge;
  readonly model: string;
}

/** Throws where the judge is on an engine and there is none. */
export function openJudge(ruler: Ruler, engine: JudgingEngine | null, env: NodeJS.ProcessEnv): OpenJudge {
  const { judge } = ruler;
  if (judge.kind === 'hosted') return { judge: connectHosted(ruler, judge, env), model: judge.name };
  if (engine === null) throw badConfig(`the judge ${judge.name} needs the engine; pass { engine: { connection } }`);
  const { adapterSha256 } = engine;
  const model = adapterSha256 === null ? judge.name : `engine/${adapterSha256}`;
  return { judge: connectEngineJudge(ruler, judge, engine), model };
}

export function connectHosted(ruler: Ruler, judge: HostedJudge, env: NodeJS.ProcessEnv): Judge {
  const key = requireJudgeKey(judge, env);
  const client = new OpenAI({ ...clientFor(judgeUrl(judge, env), key, env), maxRetries: 0, timeout: NO_TIMEOUT_MS });
  return createJudge(ruler, client, {});
}

/** A hosted judge, asked over a connection that keeps its answers. */
export function connectJudge(ruler: Ruler, connection: EngineConnection): Judge {
  return createJudge(ruler, clientOver(connection), {});
}

/** Sampled greedily and seeded, so that the same question has the same answer. */
function connectEngineJudge(ruler: Ruler, judge: EngineJudge, { connection, adapterSha256 }: JudgingEngine): Judge {
  const defaults = { temperature: 0, seed: 0 };
  return createJudge(ruler, clientOver(connection), defaults, (body) => checkAdapter(judge, body, adapterSha256));
}

function clientOver(connection: EngineConnection): OpenAI {
  const fetch: Fetch = async (_url, init = {}) => {
    const signals = init.signal ? [init.signal] : [];
    const { status, retryAfter, text } = await connection.post(init.body as string, {
      headers: {},
      deadlineMs: NO_TIMEOUT_MS,
      signals,
    });
    const headers = {
      'content-type': 'application/json',
      ...(retryAfter === null ? {} : { 'retry-after': retryAfter }),
    };
    return new Response(text, { status, headers });
  };
  return createOpenAIClient({ apiKey: 'temper', baseURL: `${connection.url}/v1` }, fetch);
}

function createJudge(
  ruler: Ruler,
  client: OpenAI,
  defaults: Record<string, unknown>,
  check: (body: Body) => void = () => undefined,
): Judge {
  const { judge, request } = ruler;
  return {
    name: judge.name,
    isOnEngine: judge.kind === 'engine',
    async ask(messages, { timeoutMs, signal }) {
      // The client's own timer ends with the headers: a body that never comes is this one's business.
      const late = AbortSignal.timeout(timeoutMs);
      const asked = {
        ...defaults,
        ...request,
        model: judge.model,
        messages: messages.map((message) => ({ ...message })),
      };
      const options = { signal: AbortSignal.any([signal, late]) };
      try {
        const body: Body = await client.chat.completions.create(asked, options);
        check(body);
        return readAnswer(ruler, body);
      } catch (error) {
        if (late.aborted && !signal.aborted) throw new Error(`no answer within ${timeoutMs} ms`, { cause: error });
        throw error;
      }
    },
  };
}

function readAnswer(ruler: Ruler, body: Body): JudgeAnswer {
  const choice = (Array.isArray(body.choices) ? body.choices : []).at(0) as
    | Partial<OpenAI.Chat.ChatCompletion.Choice>
    | undefined;
  if (choice?.message === undefined) throw new Error('an answer that is no chat completion');
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, cost } = (body.usage ?? {}) as UsageBody;
  const used = { promptTokens: countOf(promptTokens), completionTokens: countOf(completionTokens) };
  const content: unknown = choice.message.content;
  return {
    text: typeof content === 'string' ? content : '',
    finishReason: choice.finish_reason ?? '',
    ...used,
    usd: priceOf(ruler.judge, ruler, { ...used, cost: typeof cost === 'number' ? cost : null }),
  };
}

interface UsageBody {
  prompt_tokens?: unknown;
  completion_tokens?: unknown;
  /** Cost in US dollars, which OpenRouter reports. */
  cost?: unknown;
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function checkAdapter({ name }: EngineJudge, { adapter_sha256: found }: Body, expected: string | null): void {
  if ((found ?? null) === expected) return;
  const rule = `the judge ${name} must answer with the adapter ${String(expected)}, the engine answered with ${String(found)}`;
  throw new TemperError('PolicyMismatch', `${rule}; restart the engine, and check that it reads this run's store`);
}
