/** Requests of official samples of `@temporalio/openai-agents`, each as its activity got it and as the SDK's own client sent it. */
import { expect, test } from 'vitest';

import { ACTIVITY_DIALECTS } from '../../../play/model-activities/activity-calls.ts';
import type { Memory } from '../../../play/dialects/dialect.ts';
import { responses } from '../../../play/dialects/responses.ts';
import recorded from './openai-agents.json' with { type: 'json' };

const { invokeModelActivity: whole, invokeModelStreamActivity: streamed } = ACTIVITY_DIALECTS;
const parse = (input: unknown, memory: Memory = new Map()) => whole!.parse(JSON.stringify(input), memory);
/** The policy answers, whatever the model's name. */
const withoutModel = ({ asked: { model: _model, ...rest } }: ReturnType<typeof parse>) => rest;

const FUNCTION = { name: 'getWeather', arguments: '{"city":"Tokyo"}' };
const COMPLETION = {
  id: 'chatcmpl-0123456789abcdef01234567-0',
  choices: [
    {
      message: {
        role: 'assistant',
        content: 'I look.',
        reasoning_content: 'Tokyo?',
        tool_calls: [{ id: 'call_1', type: 'function', function: FUNCTION }],
      },
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 5, completion_tokens: 3 },
};
const ASKED = { modelName: 'gpt-5', request: { input: 'Weather?', modelSettings: {}, tools: [], handoffs: [] } };

test.for(recorded)('$workflow asks what its plain transport asks', ({ input, sent }) => {
  expect(withoutModel(parse(input))).toEqual(withoutModel(responses.parse(JSON.stringify(sent), new Map())));
});

test('an answer has the form of the SDK, and comes back as the model wrote it', () => {
  const call = parse(ASKED);
  const answer = whole!.write(COMPLETION, call) as { output: object[]; responseId: string };
  expect(answer).toMatchObject({ usage: { requests: 1, inputTokens: 5, totalTokens: 8 } });
  expect(answer.output).toMatchObject([
    { type: 'reasoning', content: [] },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }], status: 'completed' },
    { type: 'function_call', callId: 'call_1', ...FUNCTION, status: 'completed' },
  ]);
  const result = {
    type: 'function_call_result',
    callId: 'call_1',
    name: 'getWeather',
    output: { type: 'text', text: 'sunny' },
  };
  const user = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] };
  const { messages } = parse({
    modelName: '',
    request: { ...ASKED.request, input: [user, ...answer.output, result] },
  }).asked;
  const calls = [{ id: 'call_1', type: 'function', function: FUNCTION }];
  expect(messages).toEqual([
    { role: 'user', content: 'Weather?' },
    { role: 'assistant', content: 'I look.', tool_calls: calls, reasoning_content: 'Tokyo?' },
    { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  ]);
});

test('an earlier answer may be named by its id', () => {
  const memory: Memory = new Map();
  const call = parse(ASKED, memory);
  whole!.keep?.(COMPLETION, call, memory);
  const { responseId } = whole!.write(COMPLETION, call) as { responseId: string };
  const later = { ...ASKED.request, input: 'And now?', previousResponseId: responseId };
  expect(parse({ modelName: '', request: later }, memory).asked.messages).toHaveLength(3);
});

test('a stream is the list of its events', () => {
  const events = streamed!.write(COMPLETION, parse(ASKED)) as { type: string; response?: { output: object[] } }[];
  const types = events.map(({ type }) => type).filter((type) => type !== 'model');
  expect(types).toEqual(['response_started', 'output_text_delta', 'response_done']);
  expect(events.find(({ type }) => type === 'response_done')?.response?.output).toHaveLength(3);
});

test.for([
  [{ tools: [{ type: 'hosted_tool', name: 'web_search' }] }, 'tools must be functions'],
  [{ conversationId: 'conv_1' }, 'conversation is not supported'],
  [{ input: [{ type: 'computer_call' }] }, 'an item of input must be a message'],
] as const)('%o is refused by name', ([members, words]) => {
  expect(() => parse({ modelName: '', request: { ...ASKED.request, ...members } })).toThrow(words);
});
