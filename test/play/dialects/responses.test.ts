/** OpenAI's responses, through the official client. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type OpenAI from 'openai';

import type { FakeEngine } from '../../fake-engine.ts';
import { markOf, playOne } from '../play.ts';
import { ARGUMENTS, QUESTION, RESPONSE_TOOLS, schema, startKeyEngine, type ResponseParams } from './key-engine.ts';

let engine: FakeEngine;
beforeAll(async () => {
  engine = await startKeyEngine();
});
afterAll(() => engine.close());
beforeEach(() => {
  engine.executed.length = 0;
});

const callEvents = [
  'output_item.added',
  'function_call_arguments.delta',
  'function_call_arguments.done',
  'output_item.done',
];

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

  test.each([
    ['previous_response_id', { previous_response_id: 'resp_1' }],
    ['conversation', { conversation: 'conv_1' }],
    ['tools', { tools: [{ type: 'web_search' as const }] }],
    ['response_format', { text: { format: { type: 'json_schema', name: 'key', schema } } }],
    ['include', { include: ['message.output_text.logprobs' as const] }],
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
