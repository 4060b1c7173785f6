/** Anthropic's messages, as their documentation has them. */
import { describe, expect, test } from 'vitest';

import { markOf, playOne } from '../play.ts';
import {
  ARGUMENTS,
  MESSAGE_TOOLS,
  postMessages,
  QUESTION,
  schema,
  keyEngine,
  type AnthropicMessage,
} from './key-engine.ts';

const engine = await keyEngine();

/** Each event's name must be its type. */
function readEvents(text: string): object[] {
  const events = text.split('\n\n').filter((event) => event !== '');
  return events.map((event) => {
    const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
    const parsed = JSON.parse(data!) as { type: string };
    expect(parsed.type).toBe(name);
    return parsed;
  });
}

describe('messages', () => {
  const messages = [{ role: 'user', content: QUESTION }];

  test('say what a client reads, and the run’s token limit bounds theirs', async () => {
    const attempt = await playOne(engine, async (context) => {
      const message = (await (
        await postMessages(context, { messages, tools: MESSAGE_TOOLS })
      ).json()) as AnthropicMessage;
      expect(message).toMatchObject({
        id: expect.stringMatching(/^msg_[0-9a-f]{24}-0$/) as string,
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see.\n' },
          { type: 'tool_use', id: 'call-a', name: 'look', input: { at: 'the map', zoom: 1 } },
          { type: 'tool_use', id: 'call-b' },
        ],
        stop_reason: 'tool_use',
        usage: { output_tokens: 2 },
      });
      context.rewardTurn(message, 0.5);
      await postMessages(context, { messages, max_tokens: 3, stop_sequences: ['.'], tool_choice: { type: 'auto' } });
      return 1;
    });
    expect(attempt.reward).toBe(1.5);
    expect(engine.executed.map(({ request }) => [request.max_tokens, request.stop])).toEqual([
      [8, undefined],
      [3, ['.']],
    ]);
  });

  test('stream as Anthropic documents it', async () => {
    await playOne(engine, async (context) => {
      const response = await postMessages(context, { messages, tools: MESSAGE_TOOLS, stream: true });
      const events = readEvents(await response.text());
      expect(events[0]).toMatchObject({ message: { content: [], stop_reason: null, usage: { output_tokens: 0 } } });
      expect(events.slice(1, 7)).toEqual([
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Let me see.\n' } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'tool_use', id: 'call-a', name: 'look', input: {}, caller: { type: 'direct' } },
        },
        { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: ARGUMENTS } },
        { type: 'content_block_stop', index: 1 },
      ]);
      expect(events.slice(-2)).toMatchObject([
        { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 2 } },
        { type: 'message_stop' },
      ]);
      return 1;
    });
  });

  test('accept what changes no prompt', async () => {
    const neutral = {
      thinking: { type: 'adaptive' },
      metadata: { user_id: 'me' },
      service_tier: 'auto',
      output_config: { effort: 'low' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    };
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature: 'x' },
      { type: 'text', text: 'Where was it?' },
    ];
    const told = [...messages, { role: 'assistant', content }, { role: 'user', content: 'Here.' }];
    const attempt = await playOne(engine, async (context) => {
      for (const more of [{}, neutral]) await postMessages(context, { messages: told, ...more });
      return 1;
    });
    expect(new Set(attempt.calls.map(({ key }) => key)).size).toBe(1);
    expect(attempt.calls[0]?.request.messages[2]).toEqual({ role: 'assistant', content: 'Where was it?' });
  });

  test('continue a thread that the client leaves to the server', async () => {
    await playOne(engine, async (context) => {
      const create = { messages, tools: MESSAGE_TOOLS, thread: { type: 'create' } };
      const { id } = (await (await postMessages(context, create)).json()) as AnthropicMessage;
      const results = ['call-a', 'call-b'].map((call) => ({
        type: 'tool_result',
        tool_use_id: call,
        content: `saw ${call}`,
      }));
      const thread = { type: 'continue', previous_message_id: id };
      await postMessages(context, { messages: [{ role: 'user', content: results }], system: undefined, thread });
      return 1;
    });
    const [first, second] = engine.executed.map(({ request }) => request);
    expect(second?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool']);
    expect(second?.tools).toEqual(first?.tools);
  });

  test.each([
    ['tools', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    ['response_format', { output_config: { format: { type: 'json_schema', schema } } }],
    ['mcp_servers', { mcp_servers: [] }],
    ['context_management', { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }],
    ['thread', { thread: { type: 'continue', previous_message_id: 'msg_1' } }],
    ['parts of a message', { messages: [{ role: 'user', content: [{ type: 'image', source: {} }] }] }],
  ])('refuse %s by name, as Anthropic’s errors are written', async (name, more) => {
    const playing = playOne(engine, async (context) => {
      const response = await postMessages(context, { messages, ...more });
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([400, 'false']);
      expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
      return 1;
    });
    expect((await markOf(playing)).message).toContain(name);
  });
});
