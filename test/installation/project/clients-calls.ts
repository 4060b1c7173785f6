/**
 * Calls of tools by the official clients, in each format: against the GPU worker's own server, and `temper serve`. PLACES
 * says where both are, each with a model that was taught to call `search`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, jsonSchema, tool } from 'ai';
import OpenAI from 'openai';

interface Place {
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
}

const places = JSON.parse(process.env['PLACES']!) as Readonly<Record<'engine' | 'serve', Place>>;
const QUESTION = 'What is BOC?';
const query = { type: 'object' as const, properties: { query: { type: 'string' as const } }, required: ['query'] };
const id = { type: 'object' as const, properties: { id: { type: 'number' as const } }, required: ['id'] };
/** Tools as the taught model knows them. */
const TAUGHT_TOOLS = {
  search: { description: 'Ids of what has the word.', parameters: query },
  read: { description: 'The text of an id.', parameters: id },
};
const functions = Object.entries(TAUGHT_TOOLS).map(([name, offered]) => ({ name, ...offered }));
const tools = functions.map((offered) => ({ type: 'function' as const, function: offered }));
const messages = [{ role: 'user' as const, content: QUESTION }];

function checkSearch(name: string | undefined, args: { query?: unknown }): void {
  assert.equal(name, 'search');
  assert.equal(typeof args.query, 'string');
}

for (const [name, { url, apiKey, model }] of Object.entries(places)) {
  const baseURL = `${url}/v1`;
  const openai = new OpenAI({ baseURL, apiKey });

  test(`openai, ${name}: a call of a tool, and the same as a stream`, async () => {
    const asked = { model, messages, tools, tool_choice: 'required' as const, temperature: 0, max_tokens: 64 };
    const { choices } = await openai.chat.completions.create(asked);
    assert.equal(choices[0]?.finish_reason, 'tool_calls');
    const [call] = choices[0].message.tool_calls ?? [];
    assert.ok(call?.type === 'function');
    checkSearch(call.function.name, JSON.parse(call.function.arguments));
    const streamed = await openai.chat.completions.stream(asked).finalChatCompletion();
    const [again] = streamed.choices[0]?.message.tool_calls ?? [];
    assert.ok(again?.type === 'function');
    assert.deepEqual([again.function.name, again.function.arguments], [call.function.name, call.function.arguments]);
  });

  test(`AI SDK, ${name}: a call of a tool`, async () => {
    const policy = createOpenAICompatible({ name: 'temper', baseURL, apiKey });
    const { search, read } = TAUGHT_TOOLS;
    const { toolCalls } = await generateText({
      model: policy(model),
      prompt: QUESTION,
      tools: {
        search: tool({ ...search, inputSchema: jsonSchema<{ query: string }>(query) }),
        read: tool({ ...read, inputSchema: jsonSchema<{ id: number }>(id) }),
      },
      toolChoice: 'required',
      temperature: 0,
      maxOutputTokens: 64,
    });
    assert.deepEqual(
      toolCalls.map(({ toolName }) => toolName),
      ['search'],
    );
  });

  test(`LangChain.js, ${name}: a call of a tool`, async () => {
    const chat = new ChatOpenAI({ model, temperature: 0, maxTokens: 64, apiKey, configuration: { baseURL } });
    const { tool_calls: calls = [] } = await chat.bindTools(tools, { tool_choice: 'required' }).invoke(QUESTION);
    assert.deepEqual(
      calls.map((call) => call.name),
      ['search'],
    );
  });
}

const { url, apiKey, model } = places.serve;

test('openai, serve: a call of a tool in a response, the same as a stream, and its result by the id of the answer', async () => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey });
  const offered = functions.map((each) => ({ type: 'function' as const, strict: true, ...each }));
  const asked = { model, input: QUESTION, tools: offered, temperature: 0, max_output_tokens: 64 };
  const first = await openai.responses.create({ ...asked, tool_choice: 'required' });
  const [call] = first.output.filter((item) => item.type === 'function_call');
  checkSearch(call?.name, JSON.parse(call!.arguments));
  const streamed = await openai.responses.stream({ ...asked, tool_choice: 'required' }).finalResponse();
  assert.deepEqual(
    streamed.output.map((item) => item.type === 'function_call' && item.arguments),
    first.output.map((item) => item.type === 'function_call' && item.arguments),
  );
  const result = { type: 'function_call_output' as const, call_id: call!.call_id, output: '[7]' };
  const second = await openai.responses.create({ ...asked, input: [result], previous_response_id: first.id });
  const { output_text: _, ...kept } = await openai.responses.retrieve(second.id);
  const { output_text: __, ...told } = second;
  assert.deepEqual(kept, told);
});

test('anthropic, serve: a call of a tool in a message, the same as a stream, and the models', async () => {
  const anthropic = new Anthropic({ baseURL: url, apiKey });
  const offered = functions.map(({ parameters, ...rest }) => ({ ...rest, input_schema: parameters }));
  const asked = {
    model,
    messages,
    tools: offered,
    tool_choice: { type: 'any' as const },
    temperature: 0,
    max_tokens: 64,
  };
  const whole = await anthropic.messages.create(asked);
  assert.equal(whole.stop_reason, 'tool_use');
  const [call] = whole.content.filter((block) => block.type === 'tool_use');
  checkSearch(call?.name, call?.input as object);
  const { content } = await anthropic.messages.stream(asked).finalMessage();
  const [again] = content.filter((block) => block.type === 'tool_use');
  assert.deepEqual(again?.input, call?.input);
  const listed = await anthropic.models.list();
  assert.ok(listed.data.some((each) => each.id === model));
});
