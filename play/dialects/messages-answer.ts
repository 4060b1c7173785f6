/** An answer as Anthropic's messages, whole and in events. */
import { parseJson } from '../../core/text/json-text.ts';
import type { Completion } from '../connections/completion.ts';
import { callsOf, contentOf, idOf, tokensOf } from './completion-parts.ts';
import type { ParsedCall } from './dialect.ts';

interface MessageEvent {
  type: string;
  [member: string]: unknown;
}

interface Message {
  id: string;
  role: 'assistant';
  content: object[];
  [member: string]: unknown;
}

export function writeMessage(completion: Completion, { body }: ParsedCall): Message {
  return {
    id: `msg_${idOf(completion)}`,
    type: 'message',
    role: 'assistant',
    model: completion.model ?? body['model'],
    container: null,
    diagnostics: null,
    content: blocksOf(completion).map(({ block }) => block),
    stop_details: null,
    stop_reason: stopReason(completion),
    stop_sequence: null,
    usage: writeUsage(completion),
  };
}

/** Each with how it begins, and its piece. */
function blocksOf(completion: Completion): { block: object; begun: object; delta: object }[] {
  const text = contentOf(completion);
  const said = {
    block: { type: 'text', text, citations: null },
    begun: { type: 'text', text: '', citations: null },
    delta: { type: 'text_delta', text },
  };
  const calls = callsOf(completion).map(({ id, function: { name, arguments: json } }) => {
    const begun = { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } };
    const delta = { type: 'input_json_delta', partial_json: json };
    return { block: { ...begun, input: asObject(parseJson(json)) }, begun, delta };
  });
  return text === '' ? calls : [said, ...calls];
}

/** Clients expect an object, and models write what they like. */
function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { value };
}

function stopReason(completion: Completion): string {
  if (completion.choices[0]?.finish_reason === 'length') return 'max_tokens';
  return callsOf(completion).length > 0 ? 'tool_use' : 'end_turn';
}

function writeUsage(completion: Completion): object {
  const { promptTokens, completionTokens } = tokensOf(completion);
  return {
    input_tokens: promptTokens,
    output_tokens: completionTokens,
    cache_creation: null,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    inference_geo: null,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: null,
    speed: null,
  };
}

export function* messageEvents(completion: Completion, call: ParsedCall): Generator<MessageEvent> {
  const { usage, stop_reason, ...message } = writeMessage(completion, call);
  const { container, stop_details, stop_sequence } = message;
  const counted = { ...(usage as object), output_tokens: 0 };
  yield {
    type: 'message_start',
    message: { ...message, content: [], stop_reason: null, usage: counted },
  };
  for (const [index, { begun, delta }] of blocksOf(completion).entries()) {
    yield { type: 'content_block_start', index, content_block: begun };
    yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
  yield { type: 'message_delta', delta: { container, stop_details, stop_reason, stop_sequence }, usage };
  yield { type: 'message_stop' };
}
