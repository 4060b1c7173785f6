/** Messages of a record as the API shows them. What a model or a tool wrote is text: nothing of it is parsed. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { MessageView, ToolCallView } from '../api/attempt-views.ts';

export function viewMessage(message: ChatMessage, maxLength = Infinity): MessageView {
  const text = clip(contentText(message.content), maxLength);
  const { reasoning_content: thoughts } = message;
  const calls = toolCallsOf(message).map((call) => ({ name: call.name, arguments: clip(call.arguments, maxLength) }));
  return {
    role: message.role,
    text: text.text,
    ...(typeof thoughts === 'string' && thoughts !== '' && { thoughts: clip(thoughts, maxLength).text }),
    toolCalls: calls.map((call) => ({ name: call.name, arguments: call.arguments.text })),
    cut: text.cut + calls.reduce((sum, call) => sum + call.arguments.cut, 0),
  };
}

/** Calls of tools in a message; of one in no known form, its JSON stands as the arguments of a tool without a name. */
function toolCallsOf({ tool_calls: calls }: ChatMessage): ToolCallView[] {
  return Array.isArray(calls) ? calls.map(viewToolCall) : [];
}

function viewToolCall(call: unknown): ToolCallView {
  const { function: called } = (call ?? {}) as { function?: { name?: unknown; arguments?: unknown } };
  if (typeof called?.name !== 'string' || typeof called.arguments !== 'string')
    return { name: '', arguments: JSON.stringify(call) ?? 'null' };
  return { name: called.name, arguments: called.arguments };
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  return Array.isArray(content) ? content.map(partText).join('\n') : JSON.stringify(content, null, 1);
}

/** Text parts are their text; an image or a file is its JSON. */
function partText(part: unknown): string {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  return type === 'text' && typeof text === 'string' ? text : JSON.stringify(part, null, 1);
}

interface Clipped {
  readonly text: string;
  /** Characters that were cut off. */
  readonly cut: number;
}

function clip(text: string, maxLength: number): Clipped {
  return text.length <= maxLength ? { text, cut: 0 } : { text: text.slice(0, maxLength), cut: text.length - maxLength };
}

/** Text with a note of what was cut, for places that hold only text. */
export function clipText(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)} … (${text.length - maxLength} more characters)`;
}
