import { expect, test } from 'vitest';

import { LineSplitter } from '../../../core/text/lines.ts';

test.each([1, 2, 3, 100])('line feeds alone end lines, whatever pieces of %i units arrive', (size) => {
  const text = '{"a":"\u2028"}\r\n\n{"b":"\u2029\u0085"}\nlast \u2028\r';
  const splitter = new LineSplitter();
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += size) lines.push(...splitter.push(text.slice(at, at + size)));
  expect([...lines, ...splitter.end()]).toEqual(['{"a":"\u2028"}', '', '{"b":"\u2029\u0085"}', 'last \u2028']);
  expect(splitter.end()).toEqual([]);
});
