/** OpenAI's chat completions. The recorder uses the same terms, so there is little to translate. */
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';
import type { Completion } from '../connections/completion.ts';
import { type Dialect, type ParsedCall, writeEvent } from './dialect.ts';
import { asList, parseBody } from './request-body.ts';
import { badParameter } from '../recorder/canonical.ts';

export const chat: Dialect = {
  path: '/chat/completions',
  parse(text) {
    const body = parseBody(text);
    const { messages, stream } = body;
    const list = asList('messages', messages) as ChatMessage[];
    if (list.length === 0)
      throw badParameter('messages', messages, 'must be a list of at least one message', 'see the OpenAI API');
    return { asked: { ...body, messages: list }, isStreamed: stream === true, body };
  },
  write: (completion) => completion,
  *events(completion, call) {
    for (const chunk of chunksOf(completion, call)) yield writeEvent(chunk);
    yield writeEvent('[DONE]');
  },
  writeError: (error) => ({ error }),
  errorEvent: (error) => writeEvent({ error }),
};

function* chunksOf({ id, created, model, choices, usage }: Completion, { body }: ParsedCall): Generator<object> {
  const { include_usage: tellsUsage = false } = (body['stream_options'] ?? {}) as { include_usage?: boolean };
  const head = { id, object: 'chat.completion.chunk', created, model };
  for (const choice of choices)
    for (const told of deltasOf(choice))
      yield { ...head, choices: [{ index: choice['index'] ?? 0, ...told }], ...(tellsUsage ? { usage: null } : {}) };
  if (tellsUsage) yield { ...head, choices: [], usage };
}

/** Other members of a choice come with its end: client libraries keep them. */
function* deltasOf({
  message,
  finish_reason: end,
  logprobs = null,
  index: _index,
  ...rest
}: Completion['choices'][number]): Generator<object> {
  const { role, content, reasoning_content: thoughts, tool_calls: calls, refusal } = message;
  yield { delta: { role, content: '', refusal: null }, logprobs: null, finish_reason: null };
  if (typeof thoughts === 'string' && thoughts !== '')
    yield { delta: { reasoning_content: thoughts }, logprobs: null, finish_reason: null };
  if (typeof content === 'string' && content !== '') yield { delta: { content }, logprobs, finish_reason: null };
  if (typeof refusal === 'string') yield { delta: { refusal }, logprobs: null, finish_reason: null };
  for (const [index, call] of ((calls ?? []) as ToolCall[]).entries()) yield* callDeltas(index, call);
  yield { delta: {}, logprobs: null, finish_reason: end, ...rest };
}

interface ToolCall {
  id: string;
  function: { name: string; arguments: string };
}

function* callDeltas(index: number, { id, function: { name, arguments: text } }: ToolCall): Generator<object> {
  const begun = { index, id, type: 'function', function: { name, arguments: '' } };
  for (const call of [begun, { index, function: { arguments: text } }])
    yield { delta: { tool_calls: [call] }, logprobs: null, finish_reason: null };
}
