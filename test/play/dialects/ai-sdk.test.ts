/** Model activities of `@temporalio/ai-sdk`, with arguments as its workflows send them. */
import { expect, test } from 'vitest';

import { aiSdk } from '../../../play/dialects/ai-sdk.ts';
import { responses } from '../../../play/dialects/responses.ts';
import { AnsweredCalls, canonicalRequest } from '../../../play/recorder/canonical.ts';
import type { Completion } from '../../../play/connections/completion.ts';

const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
const $schema = 'http://json-schema.org/draft-07/schema#';
const system = { role: 'system', content: 'You are a helpful agent.' };
const question = 'What is the weather in Tokyo?';
const weather = { city: 'Tokyo', conditions: 'Sunny with wind.' };
const openai = { openai: { itemId: 'fc_5' } };

const tools = [
  { type: 'function', name: 'getWeather', description: 'The weather.', inputSchema: { ...parameters, $schema } },
];
const prompt = [
  system,
  { role: 'user', content: [{ type: 'text', text: question }] },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'Let me see.' },
      {
        type: 'tool-call',
        toolCallId: 'a',
        toolName: 'getWeather',
        input: { location: 'Tokyo' },
        providerOptions: openai,
      },
      { type: 'tool-call', toolCallId: 'b', toolName: 'getWeather', input: { location: 'Oslo' } },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-approval-response', approvalId: 'x', approved: true },
      { type: 'tool-result', toolCallId: 'a', toolName: 'getWeather', output: { type: 'json', value: weather } },
      { type: 'tool-result', toolCallId: 'b', toolName: 'getWeather', output: { type: 'execution-denied' } },
    ],
  },
];
const headers = { 'user-agent': 'ai/7.0.173' };

function parse(options: object) {
  return aiSdk.parse(JSON.stringify({ modelId: 'gpt-4o-mini', options: { prompt, ...options } }), new Map());
}

const completion: Completion = {
  id: 'chatcmpl-1',
  created: 60,
  choices: [
    {
      message: {
        role: 'assistant',
        content: '',
        reasoning_content: 'Hm.',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'getWeather', arguments: '{"location":"Tokyo"}' } },
        ],
      },
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 7, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 2 } },
};

test('a call has the prompt that the SDK’s own provider sends to responses', () => {
  const { asked } = parse({ tools, toolChoice: { type: 'auto' }, headers });
  const call = (id: string, location: string) => {
    return { type: 'function_call', call_id: id, name: 'getWeather', arguments: JSON.stringify({ location }) };
  };
  const body = {
    model: 'gpt-4o-mini',
    input: [
      system,
      { role: 'user', content: [{ type: 'input_text', text: question }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Let me see.' }] },
      call('a', 'Tokyo'),
      call('b', 'Oslo'),
      { type: 'function_call_output', call_id: 'a', output: JSON.stringify(weather) },
      { type: 'function_call_output', call_id: 'b', output: 'Tool call execution denied.' },
    ],
    tools: [
      {
        type: 'function',
        name: 'getWeather',
        description: 'The weather.',
        parameters: { ...parameters, $schema },
        strict: false,
      },
    ],
    tool_choice: 'auto',
  };
  const plain = responses.parse(JSON.stringify(body), new Map()).asked;
  const [own, theirs] = [asked, plain].map((each) => canonicalRequest(each, new AnsweredCalls()));
  expect(own).toEqual(theirs);
});

test('settings of a call become those of chat completions', () => {
  const settings = { temperature: 1, maxOutputTokens: 9, topP: 0.9, topK: 3, stopSequences: ['.'], seed: 4 };
  const format = { type: 'json', schema: parameters };
  const providerOptions = {
    openai: { parallelToolCalls: false, reasoningEffort: 'low' },
    anthropic: { effort: 'low' },
  };
  const choice = { type: 'tool', toolName: 'getWeather' };
  const { asked } = parse({ ...settings, tools, toolChoice: choice, responseFormat: format, providerOptions });
  expect(asked).toMatchObject({
    model: 'gpt-4o-mini',
    temperature: 1,
    max_tokens: 9,
    top_p: 0.9,
    top_k: 3,
    stop: ['.'],
    seed: 4,
    tool_choice: { type: 'function', function: { name: 'getWeather' } },
    response_format: { type: 'json_schema', json_schema: { name: 'response', schema: parameters } },
    parallel_tool_calls: false,
  });
});

test.each([
  ['a tool of the provider', { tools: [{ type: 'provider', name: 'web_search' }] }, 'tools must be functions'],
  [
    'an option of OpenAI’s own',
    { providerOptions: { openai: { previousResponseId: 'r' } } },
    'previousResponseId is not supported',
  ],
  [
    'a file',
    { prompt: [{ role: 'user', content: [{ type: 'file', data: '', mediaType: 'image/png' }] }] },
    'must be text',
  ],
  ['what nobody has heard of', { logitBias: {} }, 'logitBias is not supported'],
  ['an empty prompt', { prompt: [] }, 'prompt must have at least one message'],
])('%s is refused by name', (_what, options, words) => {
  expect(() => parse(options)).toThrow(words);
});

test('a result is what the SDK’s own provider returns', () => {
  const call = parse({});
  expect(aiSdk.write(completion, call)).toEqual({
    content: [
      { type: 'reasoning', text: 'Hm.' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'getWeather', input: '{"location":"Tokyo"}' },
    ],
    finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
    usage: {
      inputTokens: { total: 7, noCache: 7, cacheRead: 0 },
      outputTokens: { total: 5, text: 3, reasoning: 2 },
    },
    warnings: [],
    response: { id: 'chatcmpl-1', modelId: 'gpt-4o-mini', timestamp: '1970-01-01T00:01:00.000Z' },
  });
});
