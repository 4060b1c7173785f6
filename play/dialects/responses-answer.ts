/** An answer as OpenAI's responses, whole and in events. */
import type { Completion } from '../recorder/answer.ts';
import { callsOf, contentOf, idOf, tokensOf } from './completion-parts.ts';
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

/** The text, unless calls stand alone, and the calls. */
export function outputOf(completion: Completion): OutputItem[] {
  const [id, calls, status] = [idOf(completion), callsOf(completion), statusOf(completion)];
  const text = contentOf(completion);
  const content = [{ ...TEXT, text }];
  const message = { id: `msg_${id}`, type: 'message', role: 'assistant', status, content };
  const items = calls.map(({ id: callId, function: { name, arguments: args } }, index) => {
    return { id: `fc_${id}-${index}`, type: 'function_call', call_id: callId, name, arguments: args, status };
  });
  return text === '' && calls.length > 0 ? items : [message, ...items];
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

/** As OpenAI answers for what was not set. */
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
  const { promptTokens, completionTokens } = tokensOf(completion);
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
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
    const empty = item.type === 'message' ? { content: [] } : { arguments: '' };
    yield {
      type: 'response.output_item.added',
      output_index: index,
      item: { ...item, ...empty, status: 'in_progress' },
    };
    const place = { item_id: item.id, output_index: index };
    yield* item.type === 'message' ? tellText(item, place) : tellArguments(item, place);
    yield { type: 'response.output_item.done', output_index: index, item };
  }
  yield { type: `response.${response.status}`, response };
}

function* tellText({ content }: OutputItem, item: object): Generator<Told> {
  const [part] = content as { text: string }[];
  const place = { ...item, content_index: 0 };
  const text = part?.text ?? '';
  yield { type: 'response.content_part.added', ...place, part: { ...TEXT, text: '' } };
  if (text !== '') yield { type: 'response.output_text.delta', ...place, delta: text, logprobs: [] };
  yield { type: 'response.output_text.done', ...place, text, logprobs: [] };
  yield { type: 'response.content_part.done', ...place, part };
}

function* tellArguments({ name, arguments: text }: OutputItem, place: object): Generator<Told> {
  yield { type: 'response.function_call_arguments.delta', ...place, delta: text };
  yield { type: 'response.function_call_arguments.done', ...place, name, arguments: text };
}
