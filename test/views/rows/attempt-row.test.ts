import { expect, test } from 'vitest';
import type { ChatMessage } from '../../../store/records/groups/trajectories.ts';
import { attemptRows } from '../../../views/rows/attempt-row.ts';
import { attemptOf, callOf, user } from '../../store/records/made-attempt.ts';

const search = { type: 'function', function: { name: 'search', arguments: '{"query":"Paris"}' } };
const said = (content: unknown, calls?: unknown): ChatMessage => ({
  role: 'assistant',
  content,
  ...(calls !== undefined && { tool_calls: calls }),
});

function answerTo(...messages: ChatMessage[]): string | null {
  const attempts = [
    attemptOf(
      0,
      messages.map((message) => callOf([user('Where?')], '', { message })),
    ),
  ];
  const files = { place: { branch: 0, step: 1 }, group: 0, judged: null, times: null, use: 'unjudged' } as const;
  return attemptRows({ ...files, rollouts: { header: {}, attempts } })[0]!.answer;
}

test.each<[string, ChatMessage[], string | null]>([
  ['the first line of the last message', [said('Berlin'), said('\n Paris \nfor sure')], 'Paris'],
  ['no thoughts', [said('<think>\nso\n</think>\n\nParis')], 'Paris'],
  ['texts of parts', [said([{ type: 'text', text: 'Paris' }, { type: 'image_url' }])], 'Paris'],
  ['tools, if nothing else was said', [said(null, [search, search])], 'search'],
  ['words rather than tools', [said('I search.', [search])], 'I search.'],
  ['nothing', [said('')], ''],
  ['a beginning', [said('x'.repeat(300))], `${'x'.repeat(200)}…`],
  ['null without a call', [], null],
])('the answer of a row is %s', (_, messages, answer) => {
  expect(answerTo(...messages)).toBe(answer);
});

test('the answer is that of the call that was made last', () => {
  const attempts = [
    attemptOf(
      0,
      ['first', 'second'].map((answer) => callOf([user('Where?')], answer)),
    ),
  ];
  const files = { place: { branch: 0, step: 1 }, group: 0, judged: null, use: 'unjudged' } as const;
  const rows = attemptRows({ ...files, rollouts: { header: {}, attempts }, times: { callOrders: { 0: [1, 0] } } });
  expect(rows[0]!.answer).toBe('first');
});
