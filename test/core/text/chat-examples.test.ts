import { expect, test } from 'vitest';

import { encodeChatExamples, parseChatExamples } from '../../../core/text/chat-examples.ts';

const question = { role: 'user', content: '7*8=' };
const answer = { role: 'assistant', content: '56' };
const good = JSON.stringify({ messages: [question, answer] });
const other = JSON.stringify({
  messages: [
    { role: 'user', content: '2*3=' },
    { role: 'assistant', content: '6' },
  ],
});

const parse = (...lines: string[]) => parseChatExamples(lines.join('\n'), 'chats.jsonl');
const withMessages = (...messages: unknown[]) => JSON.stringify({ messages });

test('an example is named by its line, and by its id where it has one', () => {
  const named = JSON.stringify({
    id: 'x7',
    metadata: { source: 'a' },
    messages: [question, { ...answer, content: '54' }],
  });
  expect(parse(`\uFEFF${good}`, '', `  ${other}\r`, named).map(({ id }) => id)).toEqual([
    'line 1',
    'line 3',
    'line 4 (x7)',
  ]);
});

test('the same examples have the same bytes, whatever the order of their members', () => {
  const turned = '{"messages":[{"content":"7*8=","role":"user"},{"content":"56","role":"assistant"}]}';
  expect(encodeChatExamples(parse(good, other))).toEqual(encodeChatExamples(parse(turned, other)));
  expect(new TextDecoder().decode(encodeChatExamples(parse(good, other))).split('\n')[0]).toBe(
    '{"id":"line 1","messages":[{"content":"7*8=","role":"user"},{"content":"56","role":"assistant"}]}',
  );
});

test('tools and calls keep their order and the digits of their numbers', () => {
  const call = '{"arguments":{"why":"asked","2":1e3,"1":7205759403792793601,"share":1.0},"name":"book"}';
  const tools = '[{"type":"function","function":{"parameters":{"b":-0.50,"a":1E-7}}}]';
  const line = `{"tools":${tools}, "messages": [ {"content":"\\u00e9","role":"user"}, {"role":"assistant","tool_calls":[{"function":${call}}]}]}`;
  expect(new TextDecoder().decode(encodeChatExamples(parse(line, good))).split('\n')[0]).toBe(
    `{"id":"line 1","messages":[{"content":"é","role":"user"},{"role":"assistant","tool_calls":[{"function":${call}}]}],"tools":${tools}}`,
  );
});

test('numbers that JavaScript takes for the same are different examples', () => {
  const asked = (digits: string) => good.replace('7*8=', digits).replace('"56"', `[{"n":${digits}}]`);
  expect(parse(asked('7205759403792793601'), asked('7205759403792793603'))).toHaveLength(2);
});

test.each([
  ['{"messages": [', /^line 2 of chats\.jsonl must be JSON, but .+; correct the line$/],
  ['[1]', /line 2 .* must be an object with messages, got \[1\]/],
  ['{}', /line 2 .* must have messages, got none/],
  ['{"messages": []}', /must have messages as a list of objects, got \[\]/],
  ['{"messages": ["a"]}', /must have messages as a list of objects/],
  ['{"prompt": "a"}', /must have only id, messages, tools, metadata, got prompt/],
  [withMessages({ content: 'a' }, answer), /must have a role in message 0/],
  [withMessages(question), /must have an assistant message/],
  [good.replace('56', String.raw`5\ud83c`), /line 2 of .* must be JSON, but "5\\ud83c" holds half of a surrogate pair/],
  [good.replace('"role"', '"role":"tool","role"'), /must be JSON, but "role" stands twice in one object/],
  [withMessages(question, { ...answer, weight: 0 }), /must have an assistant message, .*; add one without "weight": 0/],
  [
    withMessages(question, { ...answer, weight: 0.5 }),
    /message 1 must have a weight only if .* 0 \(not trained\) or 1, got 0.5/,
  ],
  [withMessages({ ...question, weight: 0 }, answer), /message 0 must have a weight only if it is an assistant message/],
  [withMessages(answer, question), /must begin with a message that the assistant answers/],
  [
    withMessages(question, { role: 'assistant', content: '' }),
    /line 2 of chats.jsonl, message 1 must have content or tool_calls/,
  ],
  [withMessages(question, { role: 'assistant' }), /must have content or tool_calls, got none/],
  [JSON.stringify({ messages: [question, answer], tools: [] }), /must have tools as a list of objects/],
  [JSON.stringify({ messages: [question, answer], tools: ['look'] }), /must have tools as a list of objects/],
  [good, /must have different examples .*, line 2 repeats line 1; remove one of them$/],
])('the line %s is refused by its number', (line, message) => {
  expect(() => parse(good, line, other)).toThrow(message);
});

test.each([
  ['', 0],
  [good, 1],
])('a file of too few examples is refused', (text, count) => {
  expect(() => parse(text)).toThrow(
    `chats.jsonl must have at least two examples (one is held out), got ${count}; add some`,
  );
});

test('a message may be a call of a tool alone', () => {
  const calls = [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }];
  const line = JSON.stringify({
    messages: [question, { role: 'assistant', content: null, tool_calls: calls }],
    tools: [{ type: 'function' }],
  });
  expect(parse(good, line)[1]).toMatchObject({ tools: [{ type: 'function' }] });
});
