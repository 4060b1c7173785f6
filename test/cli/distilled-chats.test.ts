import { expect, test } from 'vitest';

import { distill, rolePartsOf, type RatedAttempt } from '../../cli/distill/chats/distilled-chats.ts';

const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string, more: object = {}) => ({ role: 'assistant', content, ...more });
const call = (answer: string, ...messages: object[]) => ({
  messages,
  tools: null,
  answer: assistant(answer, { refusal: null }),
});
const attempt = (number: number, reward: number, ...calls: RatedAttempt['calls']): RatedAttempt => ({
  reward,
  place: { step: 1, attempt: number },
  calls,
});

test('the best attempts are taken, the earlier ones among equals, and what they repeat is counted', () => {
  const played = [
    attempt(0, 0, call('a', user('q'))),
    attempt(1, 1, call('b', user('q'))),
    attempt(2, 1, call('b', user('q'))),
    attempt(3, 0.5, call('c', user('q'))),
    attempt(4, 1, call('d', user('q'))),
  ];
  const { attempts, examples, repeated } = distill(played, 0.5);
  expect(attempts.map(({ place }) => place['attempt'])).toEqual([1, 2, 4]);
  expect(examples.map(({ messages, metadata }) => [messages.at(-1), metadata])).toEqual([
    [assistant('b'), { step: 1, attempt: 1, reward: 1 }],
    [assistant('d'), { step: 1, attempt: 4, reward: 1 }],
  ]);
  expect(repeated).toBe(1);
});

test('a conversation in which the model said nothing is left out, for no trainer takes it', () => {
  const silent = attempt(0, 1, call('', user('q')));
  const calling = { ...call('', user('r')), answer: { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] } };
  const { examples, empty } = distill([silent, attempt(1, 1, calling)], 1);
  expect(examples.map(({ messages }) => messages.at(-1))).toEqual([{ role: 'assistant', tool_calls: [{ id: 'c' }] }]);
  expect(empty).toBe(1);
});

test('calls that go on in one conversation are one example, others are examples of their own', () => {
  const first = call('a', user('q'));
  const second = call('b', user('q'), assistant('a'), user('r'));
  const aside = call('z', user('other'));
  const { examples } = distill([attempt(0, 1, first, aside, second)], 1);
  expect(examples.map(({ messages }) => messages.length)).toEqual([2, 4]);
});

test('of an attempt with roles, those that train the policy are taken, by rewards of their own', () => {
  const roles = { x: 'main', o: 'other', y: 'main' };
  const calls = ['x', 'o', 'past', 'x'].map((role) => ({ role }));
  const played = { reward: 0, roleRewards: { x: 1, o: -1, past: 0 }, calls };
  expect(rolePartsOf(played, roles, 'main')).toEqual([{ reward: 1, calls: [calls[0], calls[3]], role: 'x' }]);
  expect(rolePartsOf(played, roles, 'other')).toEqual([{ reward: -1, calls: [calls[1]], role: 'o' }]);
  expect(rolePartsOf(played, undefined, 'main')).toEqual([played]);
});

test('the best of each role are taken, whatever another role earns', () => {
  const of = (role: string, number: number, reward: number): RatedAttempt => ({
    reward,
    place: { step: 1, attempt: number, role },
    calls: [call(`${role}${number}`, user('q'))],
  });
  const { examples } = distill([of('x', 0, 9), of('x', 1, 10), of('o', 0, 0.1), of('o', 1, -1)], 0.5);
  expect(examples.map(({ metadata }) => metadata)).toEqual([
    { step: 1, attempt: 1, role: 'x', reward: 10 },
    { step: 1, attempt: 0, role: 'o', reward: 0.1 },
  ]);
});
