/** One conversation as seven conventions record it: all of them give the same call. */
import { expect, test } from 'vitest';

import { readCall } from '../../../cli/distill/traces/span-calls.ts';
import type { PlainAttributes, ReadEvent, ReadSpan } from '../../../outbound/trace/otlp/decode.ts';

function spanOf(attributes: PlainAttributes, events: readonly ReadEvent[] = []): ReadSpan {
  const ids = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), parentSpanId: null };
  const made = { name: 'chat', start: 1n, end: 2n, hasFailed: false, resource: {}, scope: 'test' };
  return { ...ids, ...made, attributes, events };
}

const SYSTEM = 'You are terse.';
const QUESTION = 'Where is order 7?';
const ARGUMENTS = '{"order":7}';
const RESULT = 'in Oslo';
const ANSWER = 'In Oslo.';
const SCHEMA = { type: 'object', properties: { order: { type: 'integer' } } };

const CALL = {
  messages: [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: QUESTION },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: ARGUMENTS } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: RESULT },
  ],
  tools: [{ type: 'function', function: { name: 'find', description: 'Finds it.', parameters: SCHEMA } }],
  answers: [{ role: 'assistant', content: ANSWER }],
};

const text = (content: string) => ({ type: 'text', content });
const json = (value: unknown) => JSON.stringify(value);

const RECORDED: Record<string, ReadSpan> = {
  'OpenTelemetry’s attributes': spanOf({
    'gen_ai.operation.name': 'chat',
    'gen_ai.system_instructions': json([text(SYSTEM)]),
    'gen_ai.input.messages': json([
      { role: 'user', parts: [text(QUESTION)] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'find', arguments: { order: 7 } }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: RESULT }] },
    ]),
    'gen_ai.output.messages': json([{ role: 'assistant', parts: [text(ANSWER)], finish_reason: 'stop' }]),
    'gen_ai.tool.definitions': json([{ type: 'function', name: 'find', description: 'Finds it.', parameters: SCHEMA }]),
  }),
  'OpenTelemetry’s event of an operation': spanOf({ 'gen_ai.operation.name': 'chat' }, [
    {
      name: 'gen_ai.client.inference.operation.details',
      attributes: {
        'gen_ai.input.messages': [
          { role: 'system', parts: [text(SYSTEM)] },
          { role: 'user', parts: [text(QUESTION)] },
          { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'find', arguments: ARGUMENTS }] },
          { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', result: RESULT }] },
        ],
        'gen_ai.output.messages': [{ role: 'assistant', parts: [text(ANSWER)] }],
        'gen_ai.tool.definitions': [
          { type: 'function', name: 'find', description: 'Finds it.', parameters: SCHEMA as never },
        ],
      },
    },
  ]),
  'an event for each message': spanOf(
    {
      'gen_ai.request.model': 'm',
      'gen_ai.tool.definitions': json([
        { type: 'function', function: { name: 'find', description: 'Finds it.', parameters: SCHEMA } },
      ]),
    },
    [
      { name: 'gen_ai.system.message', attributes: { content: SYSTEM } },
      { name: 'gen_ai.user.message', attributes: { 'gen_ai.event.content': json({ content: QUESTION }) } },
      {
        name: 'gen_ai.assistant.message',
        attributes: {
          tool_calls: json([{ id: 'c1', type: 'function', function: { name: 'find', arguments: ARGUMENTS } }]),
        },
      },
      { name: 'gen_ai.tool.message', attributes: { content: RESULT, id: 'c1' } },
      { name: 'gen_ai.choice', attributes: { message: json({ role: 'assistant', content: ANSWER }), index: 0 } },
    ],
  ),
  OpenInference: spanOf({
    'openinference.span.kind': 'LLM',
    'llm.input_messages.0.message.role': 'system',
    'llm.input_messages.0.message.content': SYSTEM,
    'llm.input_messages.1.message.role': 'user',
    'llm.input_messages.1.message.contents.0.message_content.type': 'text',
    'llm.input_messages.1.message.contents.0.message_content.text': QUESTION,
    'llm.input_messages.2.message.role': 'assistant',
    'llm.input_messages.2.message.tool_calls.0.tool_call.id': 'c1',
    'llm.input_messages.2.message.tool_calls.0.tool_call.function.name': 'find',
    'llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments': ARGUMENTS,
    'llm.input_messages.3.message.role': 'tool',
    'llm.input_messages.3.message.tool_call_id': 'c1',
    'llm.input_messages.3.message.content': RESULT,
    'llm.output_messages.0.message.role': 'assistant',
    'llm.output_messages.0.message.content': ANSWER,
    'llm.tools.0.tool.json_schema': json({
      type: 'function',
      function: { name: 'find', description: 'Finds it.', parameters: SCHEMA },
    }),
  }),
  OpenLLMetry: spanOf({
    'llm.request.type': 'chat',
    'gen_ai.prompt.0.role': 'system',
    'gen_ai.prompt.0.content': SYSTEM,
    'gen_ai.prompt.1.role': 'user',
    'gen_ai.prompt.1.content': json([{ type: 'text', text: QUESTION }]),
    'gen_ai.prompt.2.role': 'assistant',
    'gen_ai.prompt.2.tool_calls.0.id': 'c1',
    'gen_ai.prompt.2.tool_calls.0.name': 'find',
    'gen_ai.prompt.2.tool_calls.0.arguments': ARGUMENTS,
    'gen_ai.prompt.3.role': 'tool',
    'gen_ai.prompt.3.tool_call_id': 'c1',
    'gen_ai.prompt.3.content': RESULT,
    'gen_ai.completion.0.role': 'assistant',
    'gen_ai.completion.0.content': ANSWER,
    'gen_ai.completion.0.finish_reason': 'stop',
    'llm.request.functions.0.name': 'find',
    'llm.request.functions.0.description': 'Finds it.',
    'llm.request.functions.0.parameters': json(SCHEMA),
  }),
  'the AI SDK': spanOf({
    'ai.operationId': 'ai.streamText.doStream',
    'ai.prompt.messages': json([
      { role: 'system', content: SYSTEM },
      { role: 'user', content: [{ type: 'text', text: QUESTION }] },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'find', input: { order: 7 } }] },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'find', output: { type: 'text', value: RESULT } }],
      },
    ]),
    'ai.prompt.tools': [json({ type: 'function', name: 'find', description: 'Finds it.', inputSchema: SCHEMA })],
    'ai.response.text': ANSWER,
    'ai.response.finishReason': 'stop',
  }),
  Langfuse: spanOf({
    'langfuse.observation.type': 'generation',
    'langfuse.observation.input': json({
      messages: CALL.messages,
      tools: CALL.tools,
    }),
    'langfuse.observation.output': json({ role: 'assistant', content: ANSWER }),
  }),
};

test.each(Object.entries(RECORDED))('%s', (_, span) => {
  expect(readCall(span)).toEqual(CALL);
});

const GEN_AI = { 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': json([{ role: 'user', content: 'Hi' }]) };
const FUSE = {
  'langfuse.observation.type': 'generation',
  'langfuse.observation.input': json([{ role: 'user', content: 'Hi' }]),
};
const PLAIN = { 'llm.request.type': 'chat', 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'Hi' };
const INFERENCE = {
  'openinference.span.kind': 'LLM',
  'llm.input_messages.0.message.content': 'Hi',
  'llm.output_messages.0.message.content': 'Ho',
};
const OUTPUT = { 'gen_ai.output.messages': json([{ role: 'assistant', content: 'Ho' }]) };

test.each([
  ['the prompt was not recorded', spanOf({ 'gen_ai.operation.name': 'chat' })],
  ['the answer was not recorded', spanOf(GEN_AI)],
  ['it is of an evaluation by Temper', spanOf({ ...GEN_AI, ...OUTPUT, 'temper.phase': 'evaluation' })],
  ['the call failed', { ...spanOf({ ...GEN_AI, ...OUTPUT }), hasFailed: true }],
  [
    'the answer was cut off at the token limit',
    spanOf({ ...GEN_AI, ...OUTPUT, 'gen_ai.response.finish_reasons': ['length'] }),
  ],
  ...[
    { ...GEN_AI, 'gen_ai.output.messages': json([{ role: 'assistant', parts: [], finish_reason: 'length' }]) },
    { ...FUSE, 'langfuse.observation.output': json({ choices: [{ finish_reason: 'length', message: {} }] }) },
    { ...FUSE, 'langfuse.observation.output': json({ role: 'assistant', content: 'Ho', stop_reason: 'max_tokens' }) },
    { ...PLAIN, 'gen_ai.completion.0.content': 'Ho', 'gen_ai.completion.1.finish_reason': 'length' },
    { ...INFERENCE, 'output.value': json({ choices: [{ finish_reason: 'length' }] }) },
  ].map((attributes): [string, ReadSpan] => ['the answer was cut off at the token limit', spanOf(attributes)]),
  [
    'the answer was cut off by a content filter',
    spanOf({ ...GEN_AI, ...OUTPUT, 'gen_ai.response.finish_reasons': ['content_filter'] }),
  ],
  [
    'a message has images, audio or files',
    spanOf({
      ...OUTPUT,
      'gen_ai.operation.name': 'chat',
      'gen_ai.input.messages': json([{ role: 'user', parts: [{ type: 'uri', modality: 'image', uri: 'x' }] }]),
    }),
  ],
])('%s: such a call is no example', (reason, span) => {
  expect(() => readCall(span)).toThrow(reason);
});

test('spans of agents, tools and databases are no calls of a model', () => {
  const others = ['invoke_agent', 'execute_tool', 'embeddings'].map((name) => ({ 'gen_ai.operation.name': name }));
  for (const attributes of [...others, { 'openinference.span.kind': 'AGENT' }, { 'db.system': 'postgresql' }])
    expect(readCall(spanOf({ ...GEN_AI, ...attributes, 'gen_ai.operation.name': 'other' }))).toBeNull();
});

test('an answer that is JSON is the text that the model wrote, and a user may write a list', () => {
  const attributes = { 'langfuse.observation.type': 'generation', 'langfuse.observation.output': '{"refund": true}' };
  const input = json([{ role: 'user', content: '[1, 2]' }]);
  expect(readCall(spanOf({ ...attributes, 'langfuse.observation.input': input }))).toEqual({
    messages: [{ role: 'user', content: '[1, 2]' }],
    tools: null,
    answers: [{ role: 'assistant', content: '{"refund": true}' }],
  });
});

const PARTS = '[{"type": "text", "text": "Hello"}, {"type": "text", "text": "Bye"}]';

test.each(['[]', '[{"type": "fruit", "n": 1}]', PARTS, '{"n": 1.0}', '"a"', '7', ' [1', '["\\'])(
  'what a user, a tool and a model wrote stays as it was: %j',
  (said) => {
    const chat = [{ role: 'user', content: said }, { role: 'tool', tool_call_id: 'c', content: said }];
    const answers = [{ role: 'assistant', content: said }];
    const [user, tool] = chat.map(({ content, ...message }) => ({ ...message, parts: [text(content)] }));
    const inference = { 'openinference.span.kind': 'LLM', 'llm.output_messages.0.message.content': said };
    for (const attributes of [
      { ...FUSE, 'langfuse.observation.input': json(chat), 'langfuse.observation.output': json(answers[0]) },
      { ...GEN_AI, 'gen_ai.input.messages': json([user, tool]), 'gen_ai.output.messages': json(answers) },
      {
        ...inference,
        'llm.input_messages.0.message.role': 'user',
        'llm.input_messages.0.message.content': said,
        'llm.input_messages.1.message.role': 'tool',
        'llm.input_messages.1.message.tool_call_id': 'c',
        'llm.input_messages.1.message.content': said,
      },
    ])
      expect(readCall(spanOf(attributes))).toEqual({ messages: chat, tools: null, answers });
  },
);

test('numbers keep their digits in what a model or a tool said, and are numbers in the schema of a tool', () => {
  const digits = '{"id":12345678901234567890,"price":1.50,"left":-0,"text":"1.50 \\"2.0"}';
  const call = `{"id":"c1","type":"function","function":{"name":"find","arguments":${digits}}}`;
  const asked = `[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[${call}]},{"role":"tool","parts":[{"type":"tool_result","content":${digits}}]}]`;
  const tools = '[{"name":"find","parameters":{"type":"object","maximum":1.0}}]';
  const read = readCall(spanOf({ ...GEN_AI, ...OUTPUT, 'gen_ai.input.messages': asked, 'gen_ai.tool.definitions': tools }));
  const [, said, result] = read!.messages;
  expect(said).toMatchObject({ tool_calls: [{ function: { arguments: digits } }] });
  expect(result).toMatchObject({ content: digits });
  expect(read!.tools).toEqual([{ type: 'function', function: { name: 'find', parameters: { type: 'object', maximum: 1 } } }]);
});
