import { expect, test } from 'vitest';
import { parseMcp, splitWords } from '../../../cli/scenarios/origin.ts';

const parse = (place: string, env: string[] = [], only: string[] | null = null) =>
  parseMcp({ flag: '--from-mcp', place, env, only });

test('variables are passed on to a program, and one is the bearer token of a URL', () => {
  expect(parse('npx -y server /data', ['TOKEN', 'REGION'])).toEqual({
    command: 'npx',
    args: ['-y', 'server', '/data'],
    env: ['TOKEN', 'REGION'],
    resources: true,
  });
  expect(parse('https://example.test/mcp', ['TOKEN'], ['read'])).toEqual({
    url: 'https://example.test/mcp',
    keyVariable: 'TOKEN',
    only: ['read'],
  });
  expect(() => parse('https://example.test/mcp', ['A', 'B'])).toThrow(/^--mcp-env names one variable for a URL/);
});

test.each([
  ['a  b', ['a', 'b']],
  [String.raw`a 'b c' "d \"e\" \f" g\ h`, ['a', 'b c', String.raw`d "e" \f`, 'g h']],
  [`a'b'"c"`, ['abc']],
  [`a '' b`, ['a', '', 'b']],
  ['a $HOME ; b', ['a', '$HOME', ';', 'b']],
])('the words of %s', (line, words) => {
  expect(splitWords('--from-mcp', line)).toEqual(words);
});

test.each(["a 'b", 'a "b', 'a \\'])('%s is not closed', (line) => {
  expect(() => splitWords('--from-mcp', line)).toThrow('--from-mcp must be a command line with closed quotes');
});
