/** Texts of models and servers, read in linear time: lint looks at the time, these are the values. */
import { expect, test } from 'vitest';
import { clipLine } from '../../cli/terminal/output.ts';
import { findDialect } from '../../play/dialects/answer-request.ts';
import { parseJsonAnswer } from '../../play/hosted/ask-structured.ts';
import { bound } from '../../play/mcp/ask-tool.ts';

test.each([
  ['{"a":1}', { a: 1 }],
  ['```json\n{"a":1}\n```', { a: 1 }],
  [' ```\n\n[1]```\n', [1]],
  ['<think>```</think>```json  \n2\n```', 2],
  ['```yaml\n2\n```', undefined],
  ['```', undefined],
  ['```json```', undefined],
])('%j is read as %j', (text, value) => {
  expect(parseJsonAnswer(text)).toEqual(value);
});

test.each([
  ['aé€😀', 2, 'a'],
  ['aé€😀', 3, 'aé'],
  ['aé€😀', 9, 'aé€'],
  ['a\uFFFD\uFFFDb', 7, 'a\uFFFD\uFFFD'],
])('of %j, the first %i bytes are %j', (text, most, kept) => {
  expect(bound(text, most).split('\n[cut')[0]).toBe(kept);
});

test('a line keeps its blanks, and loses what would end it', () => {
  expect(clipLine('a  b \n\t c\td  ', 20)).toBe('a  b c d  ');
});

test.each(['/chat/completions', '/messages', '/responses'])('%s takes no more messages than a context has', (path) => {
  const messages = Array.from({ length: 10_001 }, () => ({ role: 'user', content: 'x' }));
  const body = path === '/responses' ? { model: 'm', input: messages } : { model: 'm', max_tokens: 1, messages };
  const parse = () =>
    findDialect(path)!.parse(JSON.stringify(body), { get: () => null, set: () => undefined } as never);
  expect(parse).toThrow('must have at most 10000 items, got 10001');
  messages.length -= 1;
  expect(parse).not.toThrow();
});
