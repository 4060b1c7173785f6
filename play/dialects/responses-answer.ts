/** An answer as OpenAI's responses, whole and in events. */
import type { Completion } from '../connections/completion.ts';
import {
  type AnsweredCall,
  callsOf,
  contentOf,
  idOf,
  textLogprobsOf,
  thoughtsOf,
  tokensOf,
} from './completion-parts.ts';
import type { ParsedCall } from './dialect.ts';

interface OutputItem {
  id: string;
  type: string;
  [member: string]: unknown;
}

interface ResponseEvent {
  type: string;
  sequence_number: number;
  [member: string]: unknown;
}

const TEXT = { type: 'output_text', annotations: [], logprobs: [] };

/** Output items: thoughts, text (omitted if it is empty beside calls or thoughts), and calls. */
export function outputOf(completion: Completion): OutputItem[] {
  const [text, calls, thoughts] = [contentOf(completion), callsOf(completion), thoughtsOf(completion)];
  const stands = text !== '' || (calls.length === 0 && thoughts === '');
  return [
    ...(thoughts === '' ? [] : [thoughtItem(completion, thoughts)]),
    ...(stands ? [messageItem(completion, text)] : []),
    ...calls.map((call, index) => callItem(completion, call, index)),
  ];
}

/** Summaries are OpenAI's, whose own thoughts are secret. */
function thoughtItem(completion: Completion, text: string): OutputItem {
  const content = [{ type: 'reasoning_text', text }];
  return { id: `rs_${idOf(completion)}`, type: 'reasoning', summary: [], content, status: statusOf(completion) };
}

function messageItem(completion: Completion, text: string): OutputItem {
  const content = [{ ...TEXT, text, logprobs: textLogprobsOf(completion) }];
  const status = statusOf(completion);
  return { id: `msg_${idOf(completion)}`, type: 'message', role: 'assistant', status, content };
}

function callItem(completion: Completion, call: AnsweredCall, index: number): OutputItem {
  const { name, arguments: args } = call.function;
  const [id, status] = [`fc_${idOf(completion)}-${index}`, statusOf(completion)];
  return { id, type: 'function_call', call_id: call.id, name, arguments: args, status };
}

export function writeResponse(completion: Completion, { body }: ParsedCall): { id: string; status: string } {
  const status = statusOf(completion);
  return {
    ...DEFAULTS,
    ...repeated(body),
    id: `resp_${idOf(completion)}`,
    object: 'response',
    created_at: (completion['created'] as number | undefined) ?? 0,
    status,
    incomplete_details: status === 'completed' ? null : { reason: 'max_output_tokens' },
    error: null,
    model: completion.model ?? body['model'],
    output: outputOf(completion),
    usage: writeUsage(completion),
  } as { id: string; status: string };
}

/** OpenAI's answers for parameters that were not set. */
const DEFAULTS = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: true,
  temperature: null,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
};

function repeated(body: ParsedCall['body']): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => name in DEFAULTS));
}

function statusOf({ choices }: Completion): string {
  return choices[0]?.finish_reason === 'length' ? 'incomplete' : 'completed';
}

function writeUsage(completion: Completion): object {
  const { promptTokens, completionTokens, thoughtTokens } = tokensOf(completion);
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: thoughtTokens },
    total_tokens: promptTokens + completionTokens,
  };
}

export function* responseEvents(completion: Completion, call: ParsedCall): Generator<ResponseEvent> {
  let count = 0;
  for (const event of tellResponse(completion, call)) yield { ...event, sequence_number: count++ };
}

type Told = Omit<ResponseEvent, 'sequence_number'> & { type: string };

function* tellResponse(completion: Completion, call: ParsedCall): Generator<Told> {
  const response = writeResponse(completion, call);
  const begun = { ...response, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  yield { type: 'response.created', response: begun };
  yield { type: 'response.in_progress', response: begun };
  for (const [index, item] of outputOf(completion).entries()) {
    const empty = item.type === 'function_call' ? { arguments: '' } : { content: [] };
    yield {
      type: 'response.output_item.added',
      output_index: index,
      item: { ...item, ...empty, status: 'in_progress' },
    };
    const place = { item_id: item.id, output_index: index };
    yield* TELLERS[item.type]!(item, place);
    yield { type: 'response.output_item.done', output_index: index, item };
  }
  yield { type: `response.${response.status}`, response };
}

const TELLERS: Record<string, (item: OutputItem, place: object) => Generator<Told>> = {
  reasoning: tellThoughts,
  message: tellText,
  function_call: tellArguments,
};

function* tellThoughts({ content }: OutputItem, item: object): Generator<Told> {
  const [part] = content as { type: string; text: string }[];
  const place = { ...item, content_index: 0 };
  const text = part!.text;
  yield { type: 'response.content_part.added', ...place, part: { ...part, text: '' } };
  yield { type: 'response.reasoning_text.delta', ...place, delta: text };
  yield { type: 'response.reasoning_text.done', ...place, text };
  yield { type: 'response.content_part.done', ...place, part };
}

function* tellText({ content }: OutputItem, item: object): Generator<Told> {
  const [part] = content as { text: string; logprobs: readonly object[] }[];
  const place = { ...item, content_index: 0 };
  const { text, logprobs } = part!;
  yield { type: 'response.content_part.added', ...place, part: { ...TEXT, text: '' } };
  if (text !== '') yield { type: 'response.output_text.delta', ...place, delta: text, logprobs };
  yield { type: 'response.output_text.done', ...place, text, logprobs };
  yield { type: 'response.content_part.done', ...place, part };
}

function* tellArguments({ name, arguments: text }: OutputItem, place: object): Generator<Told> {
  yield { type: 'response.function_call_arguments.delta', ...place, delta: text };
  yield { type: 'response.function_call_arguments.done', ...place, name, arguments: text };
}
