/** OpenAI's responses. What an agent refers to by an id is what this attempt was answered before. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import { type Dialect, type Memory, type ParsedCall, type RequestBody, writeEvent } from './dialect.ts';
import { asList, checkNames, namesOf, parseBody, textOfParts } from './request-body.ts';
import { outputOf, responseEvents, writeResponse } from './responses-answer.ts';
import { badParameter, type AskedRequest } from '../recorder/canonical.ts';

interface Item {
  readonly type?: string;
  readonly [member: string]: unknown;
}

/** Parameters of the same name in chat completions, vLLM's included; the recorder checks their values. */
const SHARED = namesOf(`
  model temperature top_p top_logprobs parallel_tool_calls user metadata store service_tier safety_identifier
  prompt_cache_key prompt_cache_retention top_k min_p seed stop stop_token_ids ignore_eos logit_bias
  frequency_penalty presence_penalty repetition_penalty chat_template_kwargs`);
const TRANSLATED = namesOf(`
  input instructions max_output_tokens previous_response_id tools tool_choice text reasoning stream stream_options
  include`);
/** For somebody's books. */
const SILENT = namesOf('client_metadata');
const NEUTRAL = { background: [false], truncation: ['disabled'] };
const LOGPROBS = 'message.output_text.logprobs';
/** Thoughts are told as they are: none is encrypted. */
const INCLUDABLE: readonly unknown[] = [LOGPROBS, 'reasoning.encrypted_content'];

export const responses: Dialect = {
  path: '/responses',
  parse(text, memory) {
    const body = parseBody(text);
    checkNames(body, [...SHARED, ...TRANSLATED, ...SILENT], NEUTRAL);
    const input = itemsOf(body, memory);
    const asked: AskedRequest = {
      ...shared(body),
      ...translated(body),
      messages: messagesOf(body['instructions'], input),
    };
    return { asked, isStreamed: body['stream'] === true, body: { ...body, input } };
  },
  write: writeResponse,
  *events(completion, call) {
    for (const event of responseEvents(completion, call)) yield writeEvent(event, event.type);
  },
  writeError: (error) => ({ error }),
  errorEvent: (error) => writeEvent({ type: 'error', sequence_number: 0, ...error, error }, 'error'),
  keep,
};

function keep(completion: Completion, call: ParsedCall, memory: Memory): void {
  const output = outputOf(completion);
  const isStored = call.body['store'] !== false;
  for (const item of output) memory.set(item.id, [item], { isStored });
  const answer = writeResponse(completion, call);
  memory.set(answer.id, [...(call.body['input'] as Item[]), ...output], { answer, isStored });
}

/** The earlier conversation, then the new input. */
function itemsOf({ input, previous_response_id: previous }: RequestBody, memory: Memory): Item[] {
  const earlier = previous === undefined ? [] : recall('previous_response_id', previous, memory);
  const given = typeof input === 'string' ? [{ role: 'user', content: input }] : (asList('input', input) as Item[]);
  const items = given.flatMap((item) =>
    item.type === 'item_reference' ? recall('item_reference', item['id'], memory) : item,
  );
  return [...earlier, ...items];
}

function recall(name: string, id: unknown, memory: Memory): readonly Item[] {
  const items = memory.get(String(id));
  if (items !== undefined) return items as readonly Item[];
  throw badParameter(name, id, 'must name an answer of this attempt', 'send the conversation itself');
}

function shared(body: RequestBody): RequestBody {
  return Object.fromEntries(SHARED.filter((name) => name in body).map((name) => [name, body[name]]));
}

function translated({
  max_output_tokens: tokens,
  tools,
  tool_choice: choice,
  text,
  reasoning,
  include,
}: RequestBody): RequestBody {
  const { format, verbosity } = (text ?? {}) as { format?: { type?: unknown }; verbosity?: unknown };
  const { effort } = (reasoning ?? {}) as { effort?: unknown };
  const offered = asList('tools', tools ?? []).map((tool) => chatTool(tool as Item));
  return {
    ...(tokens === undefined ? {} : { max_tokens: tokens }),
    ...(offered.length === 0 ? {} : { tools: offered }),
    ...(choice === undefined ? {} : { tool_choice: chatChoice(choice) }),
    ...(format === undefined || format.type === 'text' ? {} : { response_format: chatFormat(format) }),
    ...(verbosity === undefined ? {} : { verbosity }),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(included(include).includes(LOGPROBS) ? { logprobs: true } : {}),
  };
}

function included(include: unknown = []): readonly unknown[] {
  const wanted = Array.isArray(include) ? (include as unknown[]) : [include];
  const other = wanted.find((each) => !INCLUDABLE.includes(each));
  if (other === undefined) return wanted;
  throw badParameter('include', other, `may only list ${INCLUDABLE.join(' and ')}`, 'leave it out');
}

function chatTool({ type, ...offered }: Item): object {
  if (type === 'function') return { type, function: offered };
  throw badParameter('tools', { type }, 'must be functions', 'run other tools in the rollout');
}

function chatChoice(choice: unknown): unknown {
  if (typeof choice === 'string') return choice;
  const { type, name } = choice as Item;
  if (type === 'function') return { type, function: { name } };
  throw badParameter('tool_choice', choice, 'must be auto, required, none or a function', 'change it');
}

function chatFormat({ type, ...schema }: { type?: unknown }): object {
  return type === 'json_schema' ? { type, json_schema: schema } : { type, ...schema };
}

function messagesOf(instructions: unknown, items: readonly Item[]): ChatMessage[] {
  const messages: ChatMessage[] = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
  let thoughts = '';
  for (const item of items) {
    const last = messages.at(-1);
    if (item.type === 'reasoning') thoughts = thoughtOf(item);
    else if (item.type === 'function_call' && last?.role === 'assistant')
      messages.splice(-1, 1, withCall(last, item, thoughts));
    else if (item.type === 'function_call')
      messages.push(withCall({ role: 'assistant', content: null }, item, thoughts));
    else messages.push(messageOf(item));
    // They are those of one answer.
    if (messages.at(-1)?.role !== 'assistant' && item.type !== 'reasoning') thoughts = '';
  }
  if (messages.length > 0) return messages;
  throw badParameter('input', items, 'must be a text or a list of at least one item', "see OpenAI's responses");
}

/** Thoughts before a tool call are sent to the model again, and no others, as OpenAI does. */
function withCall(message: ChatMessage, { call_id: id, name, arguments: text }: Item, thoughts: string): ChatMessage {
  const call = { id, type: 'function', function: { name, arguments: text } };
  const calls = [...((message.tool_calls ?? []) as object[]), call];
  return { ...message, tool_calls: calls, ...(thoughts === '' ? {} : { reasoning_content: thoughts }) };
}

function thoughtOf({ content }: Item): string {
  const parts = asList('content of reasoning', content ?? []) as { text?: unknown }[];
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');
}

function messageOf(item: Item): ChatMessage {
  switch (item.type ?? 'message') {
    case 'message':
      return { role: String(item['role']), content: textOfParts(item['content']) };
    case 'function_call_output':
      return { role: 'tool', tool_call_id: item['call_id'], content: textOfParts(item['output']) };
    default:
      throw badParameter('an item of input', item, 'must be a message, a function call or its output', 'leave it out');
  }
}
