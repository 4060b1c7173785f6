/** Differences in what client libraries write, and what stays as an agent wrote it. */
import { describe, expect, test } from 'vitest';

import { AnsweredCalls, canonicalRequest } from '../../play/recorder/canonical.ts';
import type { ChatMessage } from '../../store/records/groups/trajectories.ts';

const call = (text: string, id = 'call-1') => ({ id, type: 'function', function: { name: 'look', arguments: text } });
const canonical = (message: object, answered = new AnsweredCalls()) =>
  canonicalRequest({ messages: [message as ChatMessage] }, answered).messages[0];

/** Messages are compared as text, because a record keeps the order of members. */
test.each([
  { role: 'user', content: 'x' },
  { content: 'x', role: 'system' },
  { role: 'assistant', content: '' },
  { role: 'assistant', content: null, tool_calls: [call('{"a":1}')] },
  { role: 'tool', tool_call_id: 'call-1', content: 'x' },
  { role: 'assistant', content: 'x', reasoning_content: 'because' },
])('%j stays as it is', (message) => {
  expect(JSON.stringify(canonical(message))).toBe(JSON.stringify(message));
});

test.each([
  [
    { role: 'developer', content: 'x' },
    { role: 'system', content: 'x' },
  ],
  [
    { role: 'user', content: [] },
    { role: 'user', content: '' },
  ],
  [
    { role: 'assistant', content: 'x', refusal: null, annotations: [], tool_calls: [], name: 'me' },
    { role: 'assistant', content: 'x' },
  ],
  [
    { role: 'assistant', content: null },
    { role: 'assistant', content: '' },
  ],
  [
    { role: 'assistant', content: '', tool_calls: [{ index: 0, ...call('{"a": 1.0}') }] },
    { role: 'assistant', content: null, tool_calls: [call('{"a":1}')] },
  ],
  [
    { role: 'assistant', tool_calls: [call('')] },
    { role: 'assistant', content: null, tool_calls: [call('{}')] },
  ],
  [
    { role: 'assistant', content: null, tool_calls: [call('no JSON')] },
    { role: 'assistant', content: null, tool_calls: [call('no JSON')] },
  ],
])('%j is %j', (message, expected) => {
  expect(canonical(message)).toEqual(expected);
});

describe('what the model wrote', () => {
  const answered = new AnsweredCalls();
  const message = {
    role: 'assistant',
    content: 'Well.\n',
    tool_calls: [call('{"b": 1.0, "a": 2}'), call('{', 'call-2')],
  };
  answered.keep({ choices: [{ message, finish_reason: 'tool_calls' }] });

  test('is told to it in its own words, however a library wrote it', () => {
    const rewritten = { ...message, content: ' Well.', tool_calls: [call('{"a":2,"b":1}'), call('{', 'call-2')] };
    expect(canonical(rewritten, answered)).toEqual(message);
  });

  test('is told to it with the thoughts before it, where a library drops them', () => {
    const thinking = { ...message, reasoning_content: 'Hm.', tool_calls: [call('{"b":1}', 'call-3')] };
    answered.keep({ choices: [{ message: thinking, finish_reason: 'tool_calls' }] });
    const { reasoning_content: _, ...without } = thinking;
    expect(canonical(without, answered)).toEqual(thinking);
    expect(canonical({ ...thinking, reasoning_content: 'No.' }, answered)).toMatchObject({ reasoning_content: 'No.' });
    expect(canonical({ role: 'assistant', content: 'Well.\n' }, answered)).not.toHaveProperty('reasoning_content');
  });

  test('is not, where the agent changed it', () => {
    const changed = { ...message, content: 'Other.', tool_calls: [call('{"b": 1, "a": 3}')] };
    expect(canonical(changed, answered)).toEqual({ ...changed, tool_calls: [call('{"b":1,"a":3}')] });
  });
});

test('tools have one order, without what changes no prompt', () => {
  const parameters = { $schema: 'x', type: 'object', properties: {}, additionalProperties: false };
  const tool = { cache_control: {}, function: { strict: true, parameters, name: 'look' }, type: 'function' };
  const { tools } = canonicalRequest({ messages: [], tools: [tool] }, new AnsweredCalls());
  const shown = { type: 'object', properties: {}, additionalProperties: false };
  expect(JSON.stringify(tools)).toBe(
    JSON.stringify([{ type: 'function', function: { name: 'look', parameters: shown } }]),
  );
});

test.each([
  [
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
    'parts of a message must be text',
  ],
  [{ messages: [{ role: 'user', content: 3 }] }, 'content of a message must be a string or a list of text parts'],
  [{ messages: [], tools: [{ type: 'custom', custom: {} }] }, 'tools must be functions'],
  [{ messages: [{ role: 'assistant', tool_calls: [{ type: 'custom' }] }] }, 'must be calls of functions'],
])('%j is refused', (asked, rule) => {
  expect(() => canonicalRequest(asked, new AnsweredCalls())).toThrow(rule);
});
