/** An answer as Anthropic's messages, whole and in events. */
import type { Completion } from '../recorder/answer.ts';
import { callsOf, contentOf, idOf, tokensOf } from './completion-parts.ts';
import type { ParsedCall } from './dialect.ts';
import { parseJson } from './request-body.ts';

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
    content: blocksOf(completion).map(({ block }) => block),
    stop_reason: stopReason(completion),
    stop_sequence: null,
    usage: writeUsage(completion),
  };
}

/** Each with how it begins, and its piece. */
function blocksOf(completion: Completion): { block: object; begun: object; delta: object }[] {
  const text = contentOf(completion);
  const said = {
    block: { type: 'text', text },
    begun: { type: 'text', text: '' },
    delta: { type: 'text_delta', text },
  };
  const calls = callsOf(completion).map(({ id, function: { name, arguments: json } }) => {
    const begun = { type: 'tool_use', id, name, input: {} };
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
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    server_tool_use: null,
  };
}

export function* messageEvents(completion: Completion, call: ParsedCall): Generator<MessageEvent> {
  const { stop_reason, stop_sequence, usage, ...message } = writeMessage(completion, call);
  const counted = { ...(usage as object), output_tokens: 0 };
  yield {
    type: 'message_start',
    message: { ...message, content: [], stop_reason: null, stop_sequence, usage: counted },
  };
  for (const [index, { begun, delta }] of blocksOf(completion).entries()) {
    yield { type: 'content_block_start', index, content_block: begun };
    yield { type: 'content_block_delta', index, delta };
    yield { type: 'content_block_stop', index };
  }
  yield { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage };
  yield { type: 'message_stop' };
}
