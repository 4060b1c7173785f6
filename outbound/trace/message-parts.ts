/** Chat messages in the form of the conventions: a role and parts. Long texts are cut, and say so. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';

export interface PartsMessage {
  readonly role: string;
  readonly parts: readonly object[];
  readonly name?: string;
  readonly finish_reason?: string;
}

/** `text` is the longest text of one message. */
export function toParts(message: ChatMessage, maxTextLength: number): PartsMessage {
  const { role, name } = message;
  const cut = (text: string): string => cutText(text, maxTextLength);
  const parts =
    role === 'tool' || role === 'function'
      ? [
          {
            type: 'tool_call_response',
            id: message['tool_call_id'] ?? null,
            response: cut(plainTextOf(message.content)),
          },
        ]
      : [...reasoning(message, cut), ...contentParts(message.content, cut), ...toolCalls(message, cut)];
  return { role, parts, ...(typeof name === 'string' && { name }) };
}

/** `Hello … (12345 more characters)` */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()} … (${text.length - most} more characters)`;
}

/** Messages of a request as JSON; where all of them are too long, the oldest but the first go, and their number is given. */
export function toMessagesJson(
  messages: readonly ChatMessage[],
  maxTextLength: number,
): { json: string; leftOut: number } {
  const written = messages.map((message) => JSON.stringify(toParts(message, maxTextLength)));
  const kept = new Set([0]);
  let room = maxTextLength * MESSAGES_PER_TEXT - (written[0]?.length ?? 0);
  for (let index = written.length - 1; index > 0; index--) {
    room -= written[index]!.length;
    if (room < 0) break;
    kept.add(index);
  }
  const shown = written.filter((_, index) => kept.has(index));
  return { json: `[${shown.join(',')}]`, leftOut: written.length - shown.length };
}

/** All messages of one request may have so many times the length of one text. */
const MESSAGES_PER_TEXT = 5;

type Cut = (text: string) => string;

function reasoning({ reasoning_content: content }: ChatMessage, cut: Cut): object[] {
  return typeof content === 'string' && content !== '' ? [{ type: 'reasoning', content: cut(content) }] : [];
}

function contentParts(content: unknown, cut: Cut): object[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', content: cut(content) }];
  if (!Array.isArray(content)) return content === null || content === undefined ? [] : [asTextPart(content, cut)];
  return content.map((part) => contentPart(part, cut));
}

/** Bytes within a message are left out: a trace is read by people. */
function contentPart(part: unknown, cut: Cut): object {
  const { type, text: said, image_url: image } = (part ?? {}) as Record<string, unknown>;
  if (type === 'text' && typeof said === 'string') return { type: 'text', content: cut(said) };
  const uri = (image as { url?: unknown } | undefined)?.url;
  if (typeof uri !== 'string') return asTextPart(part, cut);
  const shown = uri.startsWith('data:') ? `${uri.slice(0, 40)}… (${uri.length} characters)` : cut(uri);
  return { type: 'uri', modality: 'image', uri: shown };
}

function toolCalls({ tool_calls: calls }: ChatMessage, cut: Cut): object[] {
  if (!Array.isArray(calls)) return [];
  return calls.map((call) => {
    const { id, name, arguments: given } = readToolCall(call);
    return { type: 'tool_call', id, name, arguments: parsed(given, cut) };
  });
}

export interface ToolCall {
  readonly id: string | null;
  readonly name: string;
  /** JSON, if the model wrote any. */
  readonly arguments: string;
}

/** Any JSON may stand there: a model, or another program, wrote it. */
export function readToolCall(call: unknown): ToolCall {
  const { id, function: called } = (call ?? {}) as { id?: unknown; function?: { name?: unknown; arguments?: unknown } };
  return {
    id: typeof id === 'string' ? id : null,
    name: typeof called?.name === 'string' ? called.name : 'unknown',
    arguments: typeof called?.arguments === 'string' ? called.arguments : JSON.stringify(called?.arguments ?? null),
  };
}

/** The conventions ask for an object; a text that is no JSON stays one. */
function parsed(json: string, cut: Cut): unknown {
  if (cut(json) !== json) return cut(json);
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json;
  }
}

export function plainTextOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return content === null || content === undefined ? '' : JSON.stringify(content);
}

function asTextPart(value: unknown, cut: Cut): object {
  return { type: 'text', content: cut(JSON.stringify(value)) };
}
