/** Calls of models in one form, whoever answered: one turn for each request, with all of its choices. */
import type {
  CallRecord,
  CallRequest,
  ChatMessage,
  HostedCallRecord,
} from '../../store/records/groups/trajectories.ts';
import { GEN_AI, REQUEST_PARAMETERS } from './conventions.ts';
import { toMessagesJson, toParts } from './message-parts.ts';
import type { AttributeValue, Attributes } from './otlp/span.ts';
import type { TracedRun } from './traced.ts';

export interface Turn {
  /** Index of its first call, and of its last choice, in the order in which the agent asked. */
  readonly index: number;
  readonly lastIndex: number;
  readonly provider: string;
  readonly model: string;
  readonly request: CallRequest;
  readonly choices: readonly { message: ChatMessage; finishReason: string }[];
  /** Null if the server reports none. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly own: Attributes;
  /** Error of the model's server; null if it answered. */
  readonly refusal: string | null;
  outputJson(maxTextLength: number): string;
}

/** Several choices of one request are records of their own, one after the other. */
export function policyTurns(calls: readonly CallRecord[], model: string): Turn[] {
  const turns: CallRecord[][] = [];
  for (const call of calls) {
    const [last] = turns.at(-1) ?? [];
    if (last !== undefined && last.key === call.key && last.occurrence === call.occurrence) turns.at(-1)!.push(call);
    else turns.push([call]);
  }
  let next = 0;
  return turns.map((choices) => {
    const index = next;
    next += choices.length;
    return policyTurn(choices, index, model);
  });
}

function policyTurn(choices: readonly CallRecord[], index: number, model: string): Turn {
  const [first] = choices as [CallRecord];
  const rewards = choices.map(({ reward }) => reward).filter((reward) => reward !== undefined);
  return withOutput({
    index,
    lastIndex: index + choices.length - 1,
    provider: 'temper',
    model,
    request: first.request,
    choices,
    inputTokens: first.promptTokenIds.length,
    outputTokens: choices.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    refusal: null,
    own: {
      ...ownAttributes(first),
      ...(first.adapterSha256 !== null && { 'temper.adapter.sha256': first.adapterSha256 }),
      ...(rewards.length > 0 && { 'temper.turn.reward': { double: rewards.reduce((sum, reward) => sum + reward, 0) } }),
    },
  });
}

/** A hosted model is named by its provider and its own name: `openai/gpt-5-mini`. */
export function hostedTurn(call: HostedCallRecord, index: number): Turn {
  const { model, request, choices, refusal, promptTokens, completionTokens, usd } = call;
  const slash = model.indexOf('/');
  return withOutput({
    index,
    lastIndex: index,
    provider: slash < 0 ? 'unknown' : model.slice(0, slash),
    model: model.slice(slash + 1),
    request,
    choices,
    inputTokens: promptTokens,
    outputTokens: completionTokens,
    refusal,
    own: { ...ownAttributes(call), ...(usd !== null && { 'temper.cost.usd': { double: usd } }) },
  });
}

function withOutput(turn: Omit<Turn, 'outputJson'>): Turn {
  return {
    ...turn,
    outputJson: (maxTextLength) =>
      JSON.stringify(
        turn.choices.map(({ message, finishReason }) => ({
          ...toParts(message, maxTextLength),
          finish_reason: finishReason,
        })),
      ),
  };
}

function ownAttributes({ label, role }: Pick<CallRecord, 'label' | 'role'>): Attributes {
  return {
    ...(label !== null && { 'temper.call.label': label }),
    ...(role !== undefined && { 'temper.role': role }),
  };
}

export function turnAttributes(turn: Turn, { content, maxTextLength }: TracedRun): Attributes {
  const { request, choices, inputTokens, outputTokens } = turn;
  return {
    [GEN_AI.operation]: 'chat',
    [GEN_AI.provider]: turn.provider,
    [GEN_AI.requestModel]: turn.model,
    [GEN_AI.responseModel]: turn.model,
    ...parameters(request),
    ...(choices.length > 1 && { [GEN_AI.choices]: choices.length }),
    [GEN_AI.finishReasons]: choices.map(({ finishReason }) => finishReason),
    ...(inputTokens !== null && { [GEN_AI.inputTokens]: inputTokens }),
    ...(outputTokens !== null && { [GEN_AI.outputTokens]: outputTokens }),
    ...turn.own,
    ...(content && contentAttributes(turn, maxTextLength)),
  };
}

function contentAttributes(turn: Turn, maxTextLength: number): Attributes {
  const { json, leftOut } = toMessagesJson(turn.request.messages, maxTextLength);
  return {
    [GEN_AI.inputMessages]: json,
    [GEN_AI.outputMessages]: turn.outputJson(maxTextLength),
    ...(leftOut > 0 && { 'temper.input.messages_left_out': leftOut }),
  };
}

const WHOLE = new Set(['max_tokens', 'seed']);

function parameters(request: CallRequest): Attributes {
  const given = Object.entries(REQUEST_PARAMETERS).flatMap(([name, attribute]): [string, AttributeValue][] => {
    const value = request[name];
    if (typeof value !== 'number') return [];
    return [[attribute, WHOLE.has(name) ? value : { double: value }]];
  });
  const { stop } = request;
  const stops = typeof stop === 'string' ? [stop] : stop;
  return {
    ...Object.fromEntries(given),
    ...(Array.isArray(stops) && { 'gen_ai.request.stop_sequences': stops.map(String) }),
  };
}
