/** Anthropic's messages. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import {
  type Dialect,
  type DialectError,
  type Memory,
  type ParsedCall,
  type RequestBody,
  writeEvent,
} from './dialect.ts';
import { messageEvents, writeMessage } from './messages-answer.ts';
import { asList, checkNames, namesOf, parseBody, textOfParts } from './request-body.ts';
import { badParameter } from '../recorder/canonical.ts';

interface Block {
  readonly type?: unknown;
  readonly [member: string]: unknown;
}

/** Parameters of the same name in chat completions; the recorder checks their values. */
const SHARED = namesOf('model temperature top_k top_p max_tokens');
const TRANSLATED = namesOf('messages system tools tool_choice stop_sequences output_config stream thread');
/** For somebody's books, or about thinking: whether a model thinks, its chat template decides. */
const SILENT = namesOf('thinking cache_control metadata service_tier context_management');

export const messages: Dialect = {
  path: '/messages',
  parse(text, memory) {
    const body = resume(parseBody(text), memory);
    checkNames(body, [...SHARED, ...TRANSLATED, ...SILENT], {});
    checkContext(body['context_management']);
    const shared = Object.fromEntries(SHARED.filter((name) => name in body).map((name) => [name, body[name]]));
    const asked = { ...shared, ...translated(body), messages: messagesOf(body) };
    return { asked, isStreamed: body['stream'] === true, body, boundsTokens: true };
  },
  write: writeMessage,
  *events(completion, call) {
    for (const event of messageEvents(completion, call)) yield writeEvent(event, event.type);
  },
  writeError,
  errorEvent: (error) => writeEvent(writeError(error), 'error'),
  keep,
};

function writeError({ message, code }: DialectError): object {
  return { type: 'error', error: { type: 'invalid_request_error', message, code }, request_id: null };
}

/** Thoughts are never sent to the model again, so they may be cleared; other edits would change the prompt. */
function checkContext(context: unknown): void {
  const { edits } = (context ?? {}) as { edits?: unknown };
  const other = (asList('context_management', edits ?? []) as Block[]).find(
    ({ type }) => !String(type).startsWith('clear_thinking'),
  );
  if (other !== undefined)
    throw badParameter(
      'context_management',
      other,
      'may only clear thinking',
      'shorten the conversation in the rollout',
    );
}

/** Keeps the conversation if the client leaves it to the server. */
function keep(completion: Completion, call: ParsedCall, memory: Memory): void {
  const { thread, system, tools, messages: sent } = call.body;
  if (thread === undefined) return;
  const { id, role, content } = writeMessage(completion, call);
  memory.set(id, [{ system, tools }, ...asList('messages', sent), { role, content }]);
}

function resume(body: RequestBody, memory: Memory): RequestBody {
  const { type, previous_message_id: id } = (body['thread'] ?? {}) as Record<string, unknown>;
  if (type !== 'continue') return body;
  const [created, ...earlier] = memory.get(String(id)) ?? [];
  if (created !== undefined)
    return { ...body, ...created, messages: [...earlier, ...asList('messages', body['messages'])] };
  throw badParameter('thread', id, 'must continue a message of this attempt', 'send the conversation itself');
}

function translated({
  tools,
  tool_choice: choice,
  stop_sequences: stop,
  output_config: config,
}: RequestBody): RequestBody {
  const { format, effort } = (config ?? {}) as Record<string, unknown>;
  const offered = asList('tools', tools ?? []).map((tool) => chatTool(tool as Block));
  return {
    ...(offered.length === 0 ? {} : { tools: offered }),
    ...(choice === undefined ? {} : chatChoice(choice as Block)),
    ...(stop === undefined ? {} : { stop }),
    ...(format === undefined ? {} : { response_format: chatFormat(format as Block) }),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
  };
}

/** Formats other than a schema are checked by the recorder or the engine. */
function chatFormat({ type, schema, ...rest }: Block): object {
  return type === 'json_schema'
    ? { type, json_schema: { name: 'answer', schema, ...rest } }
    : { type, schema, ...rest };
}

/** `eager_input_streaming` says how arguments are told, and not what is in them. */
function chatTool(tool: Block): object {
  const { type = 'custom', name, description, input_schema: parameters, eager_input_streaming: _, ...rest } = tool;
  if (type !== 'custom' && type !== null)
    throw badParameter('tools', { type, name }, 'must be tools of your own', 'run other tools in the rollout');
  return { type: 'function', function: { name, description, parameters, ...rest } };
}

const CHOICES = new Map<unknown, string>(Object.entries({ auto: 'auto', any: 'required', none: 'none' }));

function chatChoice({ type, name, disable_parallel_tool_use: isSingle }: Block): RequestBody {
  const choice = type === 'tool' ? { type: 'function', function: { name } } : CHOICES.get(type);
  if (choice === undefined) throw badParameter('tool_choice', type, 'must be auto, any, tool or none', 'change it');
  return { tool_choice: choice, ...(isSingle === true ? { parallel_tool_calls: false } : {}) };
}

function messagesOf({ system, messages: sent }: RequestBody): ChatMessage[] {
  const list = asList('messages', sent) as { role: string; content: unknown }[];
  if (list.length === 0) throw badParameter('messages', sent, 'must have at least one message', "see Anthropic's API");
  const first = system === undefined ? [] : [{ role: 'system', content: textOfParts(system) }];
  return [
    ...first,
    ...list.flatMap(({ role, content }) => (role === 'assistant' ? [answer(content)] : heard(role, content))),
  ];
}

/** Thoughts are left out: the chat template has no place for them. */
function answer(content: unknown): ChatMessage {
  const blocks = blocksOf(content).filter(({ type }) => type !== 'thinking' && type !== 'redacted_thinking');
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const text = textOfParts(blocks.filter((block) => !calls.includes(block)));
  if (calls.length === 0) return { role: 'assistant', content: text };
  return { role: 'assistant', content: text, tool_calls: calls.map(chatCall) };
}

function chatCall({ id, name, input }: Block): object {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

/** Results of tools are messages of their own; texts beside each other are one. */
function heard(role: string, content: unknown): ChatMessage[] {
  const told: ChatMessage[] = [];
  let texts: Block[] = [];
  const flush = (): void => {
    if (texts.length > 0) told.push({ role, content: textOfParts(texts) });
    texts = [];
  };
  for (const block of blocksOf(content)) {
    if (block.type !== 'tool_result') {
      texts.push(block);
      continue;
    }
    flush();
    told.push({ role: 'tool', tool_call_id: block['tool_use_id'], content: textOfParts(block['content']) });
  }
  flush();
  return told;
}

function blocksOf(content: unknown): Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (asList('content', content) as Block[]);
}
