/**
 * Model activities of `@temporalio/ai-sdk`: the AI SDK's call options, as LanguageModelV3 and LanguageModelV4 have them.
 * Prompts are those that its own provider for OpenAI sends.
 */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import { callsOf, contentOf, thoughtsOf, tokensOf } from './completion-parts.ts';
import type { ActivityDialect, ParsedCall, RequestBody } from './dialect.ts';
import { asList, checkNames, namesOf, parseBody, textOfParts } from './request-body.ts';
import { badParameter } from '../recorder/canonical.ts';

interface Part {
  readonly type?: unknown;
  readonly [member: string]: unknown;
}

interface PromptMessage {
  readonly role?: unknown;
  readonly content?: unknown;
}

/** Chat completions call it otherwise; the recorder checks the values. */
const RENAMED: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  maxOutputTokens: 'max_tokens',
  topP: 'top_p',
  topK: 'top_k',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  stopSequences: 'stop',
  seed: 'seed',
};
const TRANSLATED = namesOf('prompt tools toolChoice responseFormat reasoning providerOptions');
/** About the wire, which is another one here. */
const SILENT = namesOf('headers includeRawChunks abortSignal');
/** Options of the provider for OpenAI that change no prompt and no sampled token. */
const SILENT_OPTIONS = namesOf(`
  include logprobs metadata promptCacheKey promptCacheRetention reasoningEffort reasoningSummary safetyIdentifier
  serviceTier store strictJsonSchema structuredOutputs systemMessageMode textVerbosity user`);

export const aiSdk: ActivityDialect = {
  parse(text) {
    const { modelId: model, options } = parseBody(text);
    const body = parseBody(JSON.stringify(options ?? {}));
    checkNames(body, [...Object.keys(RENAMED), ...TRANSLATED, ...SILENT], {});
    const named = Object.entries(RENAMED).filter(([name]) => name in body);
    const asked = {
      model,
      ...Object.fromEntries(named.map(([name, chatName]) => [chatName, body[name]])),
      ...translated(body),
      messages: messagesOf(body['prompt']),
    };
    return { asked, isStreamed: false, body };
  },
  write: writeResult,
};

function translated({ tools, toolChoice, responseFormat, reasoning, providerOptions }: RequestBody): RequestBody {
  const offered = asList('tools', tools ?? []).map((tool) => chatTool(tool as Part));
  return {
    ...(offered.length === 0 ? {} : { tools: offered }),
    ...(offered.length === 0 || toolChoice === undefined ? {} : { tool_choice: chatChoice(toolChoice as Part) }),
    ...(responseFormat === undefined ? {} : { response_format: chatFormat(responseFormat as Part) }),
    ...(reasoning === undefined ? {} : { reasoning_effort: reasoning }),
    ...openaiOptions(providerOptions ?? {}),
  };
}

/** Those for other providers have no effect, as they have none on OpenAI's. */
function openaiOptions({ openai = {} }: { openai?: RequestBody }): RequestBody {
  const { parallelToolCalls, ...rest } = openai;
  checkNames(rest, SILENT_OPTIONS, {});
  return parallelToolCalls === undefined ? {} : { parallel_tool_calls: parallelToolCalls };
}

function chatTool({ type, name, description, inputSchema: parameters }: Part): object {
  if (type === 'function') return { type, function: { name, description, parameters } };
  throw badParameter('tools', { type, name }, 'must be functions', 'run other tools in the workflow');
}

function chatChoice({ type, toolName: name }: Part): unknown {
  return type === 'tool' ? { type: 'function', function: { name } } : type;
}

function chatFormat({ type, schema, name = 'response', description }: Part): object {
  if (type !== 'json') return { type };
  if (schema === undefined) return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name, description, schema } };
}

function messagesOf(prompt: unknown): ChatMessage[] {
  const messages = (asList('prompt', prompt) as PromptMessage[]).flatMap(chatMessages);
  if (messages.length > 0) return messages;
  throw badParameter('prompt', prompt, 'must have at least one message', "see the AI SDK's generateText");
}

function chatMessages({ role, content }: PromptMessage): ChatMessage[] {
  if (role === 'assistant') return [answer(partsOf(content))];
  if (role === 'tool') return partsOf(content).filter(isToolResult).map(toolMessage);
  return [{ role: String(role), content: textOfParts(content) }];
}

function partsOf(content: unknown): Part[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (asList('content', content) as Part[]);
}

/** Thoughts before a tool call are sent to the model again, and no others, as OpenAI does. */
function answer(parts: readonly Part[]): ChatMessage {
  const calls = parts.filter(({ type }) => type === 'tool-call');
  const thoughts = parts.filter(({ type }) => type === 'reasoning').map(({ text }) => String(text));
  const content = textOfParts(parts.filter(({ type }) => type !== 'tool-call' && type !== 'reasoning'));
  if (calls.length === 0) return { role: 'assistant', content };
  const thought = thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('') };
  return { role: 'assistant', content, ...thought, tool_calls: calls.map(chatCall) };
}

function chatCall({ toolCallId: id, toolName: name, input }: Part): object {
  const args = typeof input === 'string' ? input : JSON.stringify(input);
  return { id, type: 'function', function: { name, arguments: args } };
}

/** The other parts say that a person approved of a call; its result, or its refusal, is a part of its own. */
function isToolResult({ type }: Part): boolean {
  return type === 'tool-result';
}

function toolMessage({ toolCallId, output }: Part): ChatMessage {
  return { role: 'tool', tool_call_id: toolCallId, content: outputText((output ?? {}) as Part) };
}

function outputText({ type, value, reason = 'Tool call execution denied.' }: Part): string {
  switch (type) {
    case 'text':
      return String(value);
    case 'json':
      return JSON.stringify(value);
    case 'error-text':
    case 'error-json':
      return JSON.stringify({ error: value });
    case 'execution-denied':
      return String(reason);
    case 'content':
      return textOfParts(value);
    default:
      throw badParameter('output of a tool', { type }, 'must be text or JSON', 'return text from the tool');
  }
}

const FINISHED: Readonly<Record<string, string>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  content_filter: 'content-filter',
};

function writeResult(completion: Completion, { asked }: ParsedCall): object {
  const { id, model = asked['model'], created = 0, choices } = completion;
  const raw = choices[0]!.finish_reason;
  return {
    content: contentParts(completion),
    finishReason: { unified: FINISHED[raw] ?? 'other', raw },
    usage: usageOf(completion),
    warnings: [],
    response: { id, modelId: model, timestamp: new Date(Number(created) * 1000).toISOString() },
  };
}

function contentParts(completion: Completion): object[] {
  const [text, thoughts] = [contentOf(completion), thoughtsOf(completion)];
  return [
    ...(thoughts === '' ? [] : [{ type: 'reasoning', text: thoughts }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...callsOf(completion).map(({ id, function: { name, arguments: input } }) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input,
    })),
  ];
}

function usageOf(completion: Completion): object {
  const { promptTokens, completionTokens, thoughtTokens } = tokensOf(completion);
  return {
    inputTokens: { total: promptTokens, noCache: promptTokens, cacheRead: 0 },
    outputTokens: { total: completionTokens, text: completionTokens - thoughtTokens, reasoning: thoughtTokens },
  };
}
