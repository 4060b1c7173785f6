import { expect, test } from 'vitest';

import type { CallRecord } from '../../../store/records/groups/trajectories.ts';
import { messageText } from '../../../views/api/message-text.ts';
import { viewMessage } from '../../../views/attempts/messages.ts';
import { playedCalls } from '../../../views/attempts/read-played.ts';
import { viewTurns, WHOLE_ATTEMPT } from '../../../views/attempts/view-attempt.ts';
import { attemptOf, callOf, said, system, user } from '../../store/records/made-attempt.ts';

function turnsOf(calls: CallRecord[]) {
  return viewTurns(playedCalls(attemptOf(0, calls), null), WHOLE_ATTEMPT);
}

/** A turn as a reader sees it: from where it grew, and its new messages. */
function seen(calls: CallRecord[]) {
  return turnsOf(calls).map(({ fresh, forkOf, shared, messages }) => ({
    fresh,
    forkOf,
    shared,
    messages: messages.map(({ text }) => text),
  }));
}

test('a turn shows what it earned by itself', () => {
  const turns = turnsOf([callOf([user('?')], '!', { turn: 0, reward: 0.5 }), callOf([user('?')], '!')]);
  expect(turns.map(({ reward }) => reward)).toEqual([0.5, null]);
});

test('calls of tools stand apart, and what is none of them is shown as it is', () => {
  const called = { id: 'a', type: 'function', function: { name: 'search', arguments: '{"query": "</script>"}' } };
  const message = { role: 'assistant', content: 'Let me see.', tool_calls: [called, { odd: 1 }] };
  const view = viewMessage(message);
  expect(view.toolCalls).toEqual([
    { name: 'search', arguments: '{"query": "</script>"}' },
    { name: '', arguments: '{"odd":1}' },
  ]);
  expect(messageText(view)).toBe('Let me see.\nsearch({"query": "</script>"})\n{"odd":1}');
});

test('text parts are text, images are JSON, thoughts are apart, and a long text says how much was cut', () => {
  const parts = [
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url: { url: 'data:,' } },
  ];
  expect(viewMessage({ role: 'user', content: parts }).text).toContain('What is it?\n{');
  expect(viewMessage({ role: 'assistant', content: null, reasoning_content: 'Hm.' })).toEqual({
    role: 'assistant',
    text: '',
    thoughts: 'Hm.',
    toolCalls: [],
    cut: 0,
  });
  expect(viewMessage(user('0123456789'), 4)).toMatchObject({ text: '0123', cut: 6 });
});

test('a conversation that grows shows only what is new', () => {
  const first = [system('S'), user('1')];
  expect(seen([callOf(first, 'a'), callOf([...first, said('a'), user('2')], 'b')])).toEqual([
    { fresh: false, forkOf: null, shared: 0, messages: ['S', '1'] },
    { fresh: false, forkOf: null, shared: 3, messages: ['2'] },
  ]);
});

test('a sub-agent begins anew, and its caller goes on from where it was', () => {
  const first = [system('S'), user('1')];
  const origins = seen([
    callOf(first, 'ask another'),
    callOf([system('sub'), user('task')], 'done'),
    callOf([...first, said('ask another'), user('done')], 'b'),
  ]);
  expect(origins[1]).toEqual({ fresh: true, forkOf: null, shared: 0, messages: ['sub', 'task'] });
  expect(origins[2]).toEqual({ fresh: false, forkOf: 0, shared: 3, messages: ['done'] });
});

test('another way from an earlier point is a fork of the turn that was there last', () => {
  const first = [system('S'), user('1')];
  const grown = [...first, said('a'), user('2')];
  const origins = seen([callOf(first, 'a'), callOf(grown, 'b'), callOf([...first, said('a'), user('other')], 'c')]);
  expect(origins[2]).toEqual({ fresh: false, forkOf: 1, shared: 3, messages: ['other'] });
});

test('the same prompt asked again shows nothing twice', () => {
  const first = [system('S'), user('1')];
  expect(seen([callOf(first, 'a'), callOf(first, 'b')])[1]).toEqual({
    fresh: false,
    forkOf: 0,
    shared: 2,
    messages: [],
  });
});

test('a system prompt alone makes no conversation grow, and is not shown twice', () => {
  const calls = [callOf([system('S'), user('1')], 'a'), callOf([system('S'), user('2')], 'b')];
  expect(seen(calls)[1]).toEqual({ fresh: true, forkOf: null, shared: 1, messages: ['2'] });
});

test('a history that was cut at its beginning is known by the answers in it', () => {
  const calls = [
    callOf([system('S'), user('1')], 'a'),
    callOf([system('S'), user('1'), said('a'), user('2')], 'b'),
    callOf([system('S'), user('summary'), said('b'), user('3')], 'c'),
  ];
  expect(seen(calls)[2]).toEqual({ fresh: true, forkOf: 1, shared: 1, messages: ['summary', '3'] });
});

test('an answer that an agent hands back without empty members is the same answer', () => {
  const first = [user('1')];
  const message = { role: 'assistant', content: 'a', tool_calls: [], refusal: null };
  const calls = [callOf(first, '', { message }), callOf([...first, said('a'), user('2')], 'b')];
  expect(seen(calls)[1]).toMatchObject({ fresh: false, forkOf: null, messages: ['2'] });
});
