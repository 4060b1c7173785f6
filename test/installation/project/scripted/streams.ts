/**
 * Each SDK's helper for streams: it sees deltas, calls of tools, usage and the end as its types promise. What is expected
 * is written in those types, so that the compiler finds a member that a client may rely on and nobody tells.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import type { TextStreamPart } from 'ai';
import type OpenAI from 'openai';
import {
  ARGUMENTS,
  chat,
  LOOKS,
  messages,
  name,
  parameters,
  play,
  responses,
  SAYS,
  text,
  tools,
} from './stream-helpers.ts';

const streams = (title: string, ...playing: Parameters<typeof play>) =>
  test(title, async () => void (await play(...playing)));

streams('chat.completions.stream of OpenAI', async (context) => {
  const told: unknown[] = [];
  const stream = chat(context)
    .on('content', (delta, snapshot) => told.push([delta, snapshot]))
    .on('content.done', ({ content }) => told.push(content))
    .on('tool_calls.function.arguments.delta', ({ name, arguments_delta }) => told.push([name, arguments_delta]))
    .on('tool_calls.function.arguments.done', ({ index, arguments: all }) => told.push([index, all]))
    .on('totalUsage', (usage) => told.push(usage))
    .on('end', () => told.push('end'));
  const completion = await stream.finalChatCompletion();
  await stream.done();
  const usage: OpenAI.CompletionUsage = { prompt_tokens: 174, completion_tokens: 111, total_tokens: 285 };
  assert.deepEqual(told, [[SAYS, SAYS], SAYS, [name, ''], [name, ARGUMENTS], [0, ARGUMENTS], usage, 'end']);
  const call = { id: 'call-0-0', type: 'function' as const, function: { name, arguments: ARGUMENTS } };
  const message: OpenAI.ChatCompletionMessage = {
    role: 'assistant',
    content: SAYS,
    refusal: null,
    tool_calls: [call],
  };
  const expected: OpenAI.ChatCompletion = {
    id: completion.id,
    object: 'chat.completion',
    created: 0,
    model: context.model,
    choices: [{ index: 0, finish_reason: 'tool_calls', logprobs: null, message }],
    usage,
  };
  assert.deepEqual(plain(completion), withParsed(expected));
});

/** The client adds what it has parsed. */
function withParsed({ choices, ...completion }: OpenAI.ChatCompletion): object {
  return {
    ...completion,
    choices: choices.map(({ message, ...choice }) => ({ ...choice, message: { ...message, parsed: null } })),
  };
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

streams('responses.stream of OpenAI', async (context) => {
  const told: unknown[] = [];
  const stream = responses(context)
    .on('response.output_text.delta', ({ delta, snapshot }) => told.push([delta, snapshot]))
    .on('response.function_call_arguments.delta', ({ delta, snapshot }) => told.push([delta, snapshot]))
    .on('response.completed', ({ response: { status, usage } }) => told.push([status, usage]));
  const types: string[] = [];
  for await (const { type, sequence_number } of stream) {
    assert.equal(sequence_number, types.length);
    types.push(type);
  }
  const usage: OpenAI.Responses.ResponseUsage = {
    input_tokens: 174,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 111,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 285,
  };
  assert.deepEqual(told, [
    [SAYS, SAYS],
    [ARGUMENTS, ARGUMENTS],
    ['completed', usage],
  ]);
  assert.deepEqual(types, [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ]);
  const { output, output_text, ...response } = await stream.finalResponse();
  const [message, call] = output as [OpenAI.Responses.ResponseOutputMessage, OpenAI.Responses.ResponseFunctionToolCall];
  const expected: Omit<OpenAI.Responses.Response, 'output' | 'output_text'> = {
    id: response.id,
    object: 'response',
    created_at: 0,
    model: context.model,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: 32,
    metadata: {},
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [{ type: 'function', name, parameters, strict: false }],
    top_p: null,
    truncation: 'disabled',
    usage,
  };
  const { store: _store, output_parsed: _parsed, ...rest } = plain(response) as Record<string, unknown>;
  assert.deepEqual(rest, expected);
  assert.equal(output_text, SAYS);
  const expectedCall: OpenAI.Responses.ResponseFunctionToolCall = {
    id: call.id!,
    type: 'function_call',
    call_id: 'call-0-0',
    name,
    arguments: ARGUMENTS,
    status: 'completed',
  };
  const { parsed_arguments: _arguments, ...rewritten } = plain(call) as Record<string, unknown>;
  assert.deepEqual(rewritten, expectedCall);
  assert.equal(message.status, 'completed');
});

streams('messages.stream of Anthropic', async (context) => {
  const told: unknown[] = [];
  const stream = messages(context)
    .on('text', (delta, snapshot) => told.push([delta, snapshot]))
    .on('inputJson', (delta, snapshot) => told.push([delta, snapshot]))
    .on('contentBlock', (block) => told.push(block))
    .on('finalMessage', ({ stop_reason }) => told.push(stop_reason))
    .on('end', () => told.push('end'));
  const message = await stream.finalMessage();
  await stream.done();
  const text: Anthropic.TextBlock = { type: 'text', text: SAYS, citations: null };
  const input = { thing: 'key' };
  const call: Anthropic.ToolUseBlock = { type: 'tool_use', id: 'call-0-0', name, input, caller: { type: 'direct' } };
  assert.deepEqual(told, [[SAYS, SAYS], text, [ARGUMENTS, input], call, 'tool_use', 'end']);
  const expected: Anthropic.Message = {
    id: message.id,
    type: 'message',
    role: 'assistant',
    model: context.model,
    container: null,
    content: [text, call],
    diagnostics: null,
    stop_details: null,
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: {
      input_tokens: 174,
      output_tokens: 111,
      cache_creation: null,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      inference_geo: null,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: null,
      speed: null,
    },
  };
  assert.deepEqual(plain(message), { ...expected, parsed_output: null });
});

streams(
  'streamText of the AI SDK',
  async (context) => {
    const parts: TextStreamPart<typeof tools>[] = [];
    const result = text(context);
    for await (const part of result.fullStream) parts.push(part);
    const of = <T extends TextStreamPart<typeof tools>['type']>(type: T) =>
      parts.filter((part): part is Extract<TextStreamPart<typeof tools>, { type: T }> => part.type === type);
    assert.deepEqual(
      of('text-delta').map((part) => part.text),
      [SAYS, 'In the hall.'],
    );
    assert.deepEqual(
      of('tool-input-delta').map(({ id, delta }) => [id, delta]),
      [['call-0-0', ARGUMENTS]],
    );
    assert.deepEqual(
      of('tool-call').map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input]),
      [['call-0-0', name, { thing: 'key' }]],
    );
    assert.deepEqual(
      of('tool-result').map(({ output }) => output),
      ['hall'],
    );
    assert.deepEqual(
      of('finish-step').map(({ finishReason, usage }) => [finishReason, usage.outputTokens]),
      [
        ['tool-calls', 111],
        ['stop', 15],
      ],
    );
    assert.equal(parts[0]?.type, 'start');
    const end = parts.at(-1);
    assert.ok(end?.type === 'finish');
    assert.deepEqual([end.finishReason, end.totalUsage.outputTokens], ['stop', 126]);
    assert.equal(end.totalUsage.totalTokens, (end.totalUsage.inputTokens ?? 0) + 126);
  },
  [LOOKS, 'In the hall.'],
);
