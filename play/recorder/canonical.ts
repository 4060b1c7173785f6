/**
 * One form for what client libraries write differently: the same conversation has the same key, seed and prompt,
 * whichever library sends it. What the model wrote in this attempt is repeated to it in its own words.
 */
import { badConfig, showValue, type TemperError } from '../../core/contract/failures.ts';
import { parseJson } from '../../core/text/json-text.ts';
import { canonicalJson } from '../../core/text/hashes.ts';
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';

/** An agent's request in the form of chat completions, into which dialects translate. */
export interface AskedRequest {
  messages: ChatMessage[];
  [parameter: string]: unknown;
}

export function badParameter(name: string, value: unknown, rule: string, remedy: string): TemperError {
  return badConfig(`${name} ${rule}, got ${showValue(value)}; ${remedy}`);
}

interface FunctionCall {
  id?: unknown;
  function: { name: unknown; arguments?: unknown };
}

interface Answered {
  content: unknown;
  /** Undefined where the model did not think. */
  thoughts: unknown;
  arguments: string;
}

/** Answers with tool calls, by the ids of the calls: libraries parse arguments and write them anew. */
export class AnsweredCalls {
  readonly #answered = new Map<unknown, Answered>();

  keep({ choices }: Completion): void {
    for (const { message } of choices)
      for (const { id, function: called } of functionCalls(message))
        if (typeof id === 'string' && typeof called.arguments === 'string')
          this.#answered.set(id, {
            content: message.content ?? null,
            thoughts: message['reasoning_content'],
            arguments: called.arguments,
          });
  }

  get(id: unknown): Answered | null {
    return this.#answered.get(id) ?? null;
  }
}

/** Members of a message and of a tool that change no prompt. */
const SILENT = new Set(['name', 'cache_control']);
const SILENT_IN_TOOLS = new Set(['strict', 'cache_control']);

/** A request in this form stays as it is, with the order of its members. */
export function canonicalRequest(asked: AskedRequest, answered: AnsweredCalls): AskedRequest {
  const { messages, tools } = asked;
  const canonical = { ...asked, messages: messages.map((message) => canonicalMessage(message, answered)) };
  return Array.isArray(tools) ? { ...canonical, tools: tools.map(canonicalTool) } : canonical;
}

function canonicalMessage(message: ChatMessage, answered: AnsweredCalls): ChatMessage {
  const calls = functionCalls(message);
  const own = calls.length > 0 ? answered.get(calls[0]?.id) : null;
  const content = calls.length > 0 ? contentBesideCalls(message.content, own) : textOf(message.content ?? '');
  const kept = Object.entries(message).filter(([name, value]) => name === 'content' || isSeen(name, value));
  return {
    ...(Object.fromEntries(kept) as ChatMessage),
    ...(message.role === 'developer' ? { role: 'system' } : {}),
    content,
    ...thoughtsOf(message, own),
    ...(calls.length > 0 ? { tool_calls: calls.map((call) => canonicalCall(call, answered)) } : {}),
  };
}

/** Some libraries drop them. */
function thoughtsOf(message: ChatMessage, own: Answered | null): object {
  const thoughts = message['reasoning_content'] ?? own?.thoughts;
  return typeof thoughts === 'string' ? { reasoning_content: thoughts } : {};
}

function isSeen(name: string, value: unknown): boolean {
  return value !== null && !SILENT.has(name) && !(Array.isArray(value) && value.length === 0);
}

function functionCalls({ tool_calls: calls }: ChatMessage): FunctionCall[] {
  if (!Array.isArray(calls)) return [];
  const wrong = (calls as Partial<FunctionCall>[]).find((call) => !isObject(call?.function));
  if (wrong === undefined) return calls as FunctionCall[];
  throw badParameter(
    'tool_calls of a message',
    wrong,
    'must be calls of functions',
    'send the calls as they were answered',
  );
}

/** No text beside calls is null for some libraries, and empty for others; some trim it. */
function contentBesideCalls(content: unknown, answered: Answered | null): unknown {
  const text = textOf(content ?? '');
  if (answered !== null && text.trim() === textOf(answered.content ?? '').trim()) return answered.content;
  return text === '' ? null : text;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOfPart).join('');
  throw badParameter('content of a message', content, 'must be a string or a list of text parts', 'send text');
}

function textOfPart(part: unknown): string {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  if (type === 'text' && typeof text === 'string') return text;
  throw badParameter('parts of a message', part, 'must be text', 'send text only');
}

function canonicalCall({ id, function: { name, arguments: text } }: FunctionCall, answered: AnsweredCalls): object {
  const own = answered.get(id)?.arguments;
  const written = typeof text !== 'string' ? text : isSameJson(text, own) ? own : compactJson(text);
  return { id, type: 'function', function: { name, arguments: written } };
}

function isSameJson(left: string, right: string | undefined): boolean {
  if (left === right) return true;
  const [a, b] = [left, right ?? ''].map(parseJson);
  return a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b);
}

/** JSON as JavaScript writes it; other text stays as it is. */
function compactJson(text: string): string {
  const parsed = parseJson(text === '' ? '{}' : text);
  return parsed === undefined ? text : JSON.stringify(parsed);
}

/** Prompts show tools as JSON, in this order. */
function canonicalTool(tool: unknown): object {
  const { type, function: offered, ...rest } = (tool ?? {}) as { type?: unknown; function?: object };
  if (type !== 'function' || !isObject(offered))
    throw badParameter('tools', tool, 'must be functions', 'run other tools in the rollout');
  const { name, description, parameters, ...more } = visibleMembers(offered) as Record<string, unknown>;
  const { $schema: _, ...schema } = (parameters ?? {}) as Record<string, unknown>;
  return {
    type,
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      ...(parameters === undefined ? {} : { parameters: schema }),
      ...more,
    },
    ...visibleMembers(rest),
  };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function visibleMembers(members: object): object {
  return Object.fromEntries(
    Object.entries(members).filter(([name, value]) => value !== null && !SILENT_IN_TOOLS.has(name)),
  );
}
