/** OpenAI's responses, through the official client. */
import { describe, expect, test } from 'vitest';
import type OpenAI from 'openai';

import type { FakeEngine } from '../../fake-engine.ts';
import { markOf, playOne } from '../play.ts';
import { temporaryEngine } from '../shared-engine.ts';
import { ARGUMENTS, QUESTION, RESPONSE_TOOLS, schema, keyEngine, type ResponseParams } from './key-engine.ts';

const engine = await keyEngine();

const callEvents = [
  'output_item.added',
  'function_call_arguments.delta',
  'function_call_arguments.done',
  'output_item.done',
];

/** Thinks before each answer, as its tokens tell. */
function startThinker(): Promise<FakeEngine> {
  return temporaryEngine({
    spellsTokens: true,
    answer: ({ messages }) => {
      const isTold = messages.some(({ role }) => role === 'tool');
      const call = { id: 'call-a', type: 'function', function: { name: 'look', arguments: ARGUMENTS } };
      return isTold
        ? { content: 'Under the mat.', thoughts: 'So.' }
        : { content: null, thoughts: 'Hm.', toolCalls: [call] };
    },
  });
}

describe('responses', () => {
  test('say what a client reads, and rewardTurn knows them', async () => {
    const attempt = await playOne(engine, async ({ openai, model, rewardTurn }) => {
      const body = { model, input: QUESTION, tools: RESPONSE_TOOLS, max_output_tokens: 5, metadata: { a: 'b' } };
      const response = await openai.responses.create(body);
      expect(response).toMatchObject({
        object: 'response',
        status: 'completed',
        model,
        tools: RESPONSE_TOOLS,
        metadata: { a: 'b' },
        output_text: 'Let me see.\n',
        output: [
          { type: 'message' },
          { type: 'function_call', call_id: 'call-a', arguments: ARGUMENTS },
          { id: expect.stringMatching(/^fc_.*-1$/) },
        ],
        usage: { output_tokens: 2 },
      });
      rewardTurn(response, 0.5);
      rewardTurn(response.output[0]!.id!, 0.25);
      return 1;
    });
    expect(attempt.reward).toBe(1.75);
  });

  test('stream as the client’s types promise', async () => {
    await playOne(engine, async ({ openai, model }) => {
      const stream = openai.responses.stream({ model, input: QUESTION, tools: RESPONSE_TOOLS });
      const deltas: string[] = [];
      stream.on('response.output_text.delta', ({ delta, snapshot }) => deltas.push(delta, snapshot));
      stream.on('response.function_call_arguments.delta', ({ snapshot }) => deltas.push(snapshot));
      const events: OpenAI.Responses.ResponseStreamEvent[] = [];
      stream.on('event', (event) => events.push(event));
      const response = await stream.finalResponse();
      expect(deltas).toEqual(['Let me see.\n', 'Let me see.\n', ARGUMENTS, ARGUMENTS]);
      expect(response).toMatchObject({ status: 'completed', usage: { output_tokens: 2 } });
      expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
      expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
        'created',
        'in_progress',
        'output_item.added',
        'content_part.added',
        'output_text.delta',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        ...callEvents,
        ...callEvents,
        'completed',
      ]);
      return 1;
    });
  });

  test('tell what the model thought, and it is told to it again before its calls alone', async () => {
    const thinker = await startThinker();
    await playOne(thinker, async ({ openai, model, rewardTurn }) => {
      const body = { model, tools: RESPONSE_TOOLS };
      const first = await openai.responses.create({ ...body, input: QUESTION });
      const thoughts = (text: string) => ({
        type: 'reasoning',
        summary: [],
        content: [{ type: 'reasoning_text', text }],
        status: 'completed',
      });
      expect(first.output).toMatchObject([thoughts('Hm.'), { type: 'function_call' }]);
      rewardTurn(first.output[0]!.id!, 0.5);
      const output = { type: 'function_call_output' as const, call_id: 'call-a', output: 'a mat' };
      const given = [{ role: 'user' as const, content: QUESTION }, ...(first.output as never[]), output];
      const events: string[] = [];
      const stream = openai.responses.stream({ ...body, input: given });
      stream.on('event', ({ type }) => events.push(type.replace('response.', '')));
      const second = await stream.finalResponse();
      expect(second.output).toMatchObject([thoughts('So.'), { type: 'message' }]);
      expect(events.slice(2, 8)).toEqual([
        'output_item.added',
        'content_part.added',
        'reasoning_text.delta',
        'reasoning_text.done',
        'content_part.done',
        'output_item.done',
      ]);
      await openai.responses.create({
        ...body,
        input: [...given, ...(second.output as never[]), { role: 'user', content: 'Sure?' }],
      });
      return 1;
    });
    const told = thinker.executed.map(({ request }) => request.messages as object[]);
    expect(told[1]![1]).toMatchObject({ tool_calls: [{}], reasoning_content: 'Hm.' });
    expect(told[2]![3]).toEqual({ role: 'assistant', content: 'Under the mat.' });
  });

  test('tell log-probabilities of the text alone, if they are included', async () => {
    const thinker = await startThinker();
    await playOne(thinker, async ({ openai, model }) => {
      const output = { type: 'function_call_output' as const, call_id: 'call-a', output: 'a mat' };
      const call = { type: 'function_call' as const, call_id: 'call-a', name: 'look', arguments: ARGUMENTS };
      const body = { model, input: [{ role: 'user' as const, content: QUESTION }, call, output] };
      const include = ['message.output_text.logprobs' as const];
      const whole = await openai.responses.create({ ...body, include });
      const partOf = ({ output: items }: OpenAI.Responses.Response) =>
        items.flatMap((item) => (item.type === 'message' ? item.content : []))[0];
      const logprobs = Array.from('Under the mat.', (letter) => ({ token: letter, logprob: expect.any(Number) }));
      expect(partOf(whole)).toMatchObject({ logprobs });
      const stream = openai.responses.stream({ ...body, include });
      stream.on('response.output_text.delta', (event) => expect(event.logprobs).toMatchObject(logprobs));
      expect(partOf(await stream.finalResponse())).toEqual(partOf(whole));
      expect(partOf(await openai.responses.create(body))).toMatchObject({ logprobs: [] });
      return 1;
    });
  });

  test.each([
    ['seed', { seed: 7 }],
    ['previous_response_id', { previous_response_id: 'resp_1' }],
    ['conversation', { conversation: 'conv_1' }],
    ['tools', { tools: [{ type: 'web_search' as const }] }],
    ['response_format', { text: { format: { type: 'json_schema', name: 'key', schema } } }],
    ['include', { include: ['file_search_call.results' as const] }],
    [
      'parts of a message',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x', detail: 'auto' }] }] },
    ],
  ])('refuse %s by name', async (name, more) => {
    const playing = playOne(engine, async ({ openai, model }) => {
      const body = { model, input: QUESTION, ...more } as ResponseParams;
      await expect(openai.responses.create(body)).rejects.toMatchObject({ status: 400, type: 'BadConfig' });
      return 1;
    });
    expect((await markOf(playing)).message).toContain(name);
  });
});
