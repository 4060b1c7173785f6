/**
 * A recorded conversation as HTML. All of it is data of models, tools and users: escaped, with control characters made
 * visible, each text in a block of its own, so that its direction ends with it. Images are named, never loaded.
 */
import { plural } from '../../../core/reports/format.ts';
import type { Conversation } from '../../../store/records/judging/conversation.ts';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';
import { markup, type Html } from '../../pages/html.ts';
import { printable } from '../../../core/text/printable.ts';

/** Characters of one text that are shown at once, and those that are behind a fold. */
const SHOWN = 20_000;
const MAX_TEXT = 2_000_000;
const MAX_MESSAGES = 1000;

/** All that an attempt said, and the tools that it had. */
export function attemptHtml({ messages, tools = [], additionalHistories = [] }: Conversation): Html {
  return markup`${conversationHtml(messages)}
${additionalHistories.map((history) => markup`<h2>Another conversation of the same attempt</h2>\n${conversationHtml(history)}`)}
${toolsHtml(tools)}`;
}

export function toolsHtml(tools: readonly unknown[]): Html | null {
  if (tools.length === 0) return null;
  return markup`<details class="tools"><summary>${plural(tools.length, 'tool')} that the assistant may call</summary>${tools.map((tool) => textHtml(JSON.stringify(tool, null, 2)))}</details>`;
}

export function conversationHtml(messages: readonly ChatMessage[]): Html {
  const shown = messages.slice(0, MAX_MESSAGES);
  const leftOut = messages.length - shown.length;
  return markup`<div class="conversation">
${shown.map(messageHtml)}
${leftOut === 0 ? null : markup`<p class="dim">${leftOut} more messages are not shown</p>`}
</div>`;
}

function messageHtml(message: ChatMessage): Html {
  const { role, content, reasoning_content: reasoning, tool_calls: calls } = message;
  const side = role === 'assistant' ? 'message answer' : 'message';
  return markup`<section class="${side}">
<h3>${ROLES[role] ?? textOf(role)}</h3>
${typeof reasoning === 'string' && reasoning !== '' ? fold('Reasoning', reasoning) : null}
${contentHtml(content)}
${Array.isArray(calls) ? calls.map(callHtml) : null}
</section>
`;
}

const ROLES: Readonly<Record<string, string>> = {
  system: 'System',
  developer: 'System',
  user: 'User',
  assistant: 'Assistant',
  tool: 'Tool result',
};

function contentHtml(content: unknown): Html | readonly Html[] | null {
  if (content === null || content === undefined || content === '') return null;
  if (typeof content === 'string') return textHtml(content);
  return Array.isArray(content) ? content.map(partHtml) : textHtml(pretty(content));
}

/** Parts of a message: text, or something that is named. */
function partHtml(part: unknown): Html {
  const { type, text, image_url: image } = (part ?? {}) as { type?: unknown; text?: unknown; image_url?: unknown };
  if (typeof text === 'string') return textHtml(text);
  if (image === undefined) return textHtml(pretty(part));
  const { url } = (typeof image === 'string' ? { url: image } : image) as { url?: unknown };
  return markup`<p class="dim" dir="auto">[${textOf(type)}: ${textOf(url).slice(0, 100)}]</p>`;
}

/** `search` with its arguments, indented if they are JSON. */
function callHtml(call: unknown): Html {
  const { function: called } = (call ?? {}) as { function?: { name?: unknown; arguments?: unknown } };
  if (typeof called?.name !== 'string') return textHtml(pretty(call));
  const given = called.arguments;
  return markup`<div class="call"><h4>calls <bdi>${textOf(called.name)}</bdi></h4>
${textHtml(typeof given === 'string' ? indented(given) : pretty(given))}</div>`;
}

function indented(json: string): string {
  try {
    return pretty(JSON.parse(json));
  } catch {
    return json;
  }
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? '';
}

/** Long texts show their beginning; the rest is behind a fold. */
export function textHtml(text: string): Html {
  const visible = textOf(text);
  if (visible.length <= SHOWN) return block(visible);
  const rest = visible.slice(SHOWN, MAX_TEXT);
  const cut = Math.max(0, visible.length - MAX_TEXT);
  return markup`${block(visible.slice(0, SHOWN))}
<details><summary>${(visible.length - SHOWN).toLocaleString('en')} more characters</summary>
${block(rest)}
${cut === 0 ? null : markup`<p class="dim">the last ${cut.toLocaleString('en')} characters are not shown</p>`}
</details>`;
}

function block(text: string): Html {
  return markup`<pre dir="auto">${text}</pre>`;
}

function fold(title: string, text: string): Html {
  return markup`<details><summary>${title}</summary>\n${textHtml(text)}\n</details>`;
}

function textOf(value: unknown): string {
  return printable(typeof value === 'string' ? value : pretty(value)).toWellFormed();
}
