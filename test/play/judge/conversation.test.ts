import { expect, test } from 'vitest';

import { conversationOf, distinctAttempts } from '../../../store/records/judging/conversation.ts';
import type { CallRecord, ChatMessage } from '../../../store/records/groups/trajectories.ts';
import { callOf, said, user } from '../../store/records/made-attempt.ts';

function call(messages: ChatMessage[], answer: ChatMessage, tools?: unknown[]): CallRecord {
  const request = tools === undefined ? { messages } : { messages, tools };
  return callOf(messages, '', { request, message: answer });
}

test('calls that extend each other are one conversation, as far as it came', () => {
  const first = [user('a')];
  const second = [...first, said('b'), user('c')];
  const calls = [call(first, said('b')), call(second, said('d'))];
  expect(conversationOf({ attempt: 3, calls })).toEqual({
    id: '3',
    messages: [...second, said('d')],
    tools: [],
    additionalHistories: [],
  });
});

test('an answer that is handed back without its empty members extends its conversation', () => {
  const answer = { role: 'assistant', content: 'b', refusal: null, tool_calls: [] };
  const calls = [call([user('a')], answer), call([user('a'), said('b'), user('c')], said('d'))];
  expect(conversationOf({ attempt: 0, calls }).additionalHistories).toEqual([]);
});

test('a rewritten history and a sub-agent stand beside the conversation that began first', () => {
  const tool = { type: 'function', function: { name: 'find' } };
  const calls = [
    call([user('a')], said('b'), [tool]),
    call([user('sub')], said('agent'), [{ ...tool }]),
    call([user('a summary')], said('end')),
  ];
  expect(conversationOf({ attempt: 0, calls })).toEqual({
    id: '0',
    messages: [user('a'), said('b')],
    tools: [tool],
    additionalHistories: [
      [user('sub'), said('agent')],
      [user('a summary'), said('end')],
    ],
  });
});

test('a conversation that goes on after a sub-agent keeps its place', () => {
  const first = [user('a'), said('b')];
  const calls = [
    call([user('a')], said('b')),
    call([user('sub')], said('agent')),
    call([...first, user('c')], said('d')),
  ];
  expect(conversationOf({ attempt: 0, calls })).toMatchObject({
    messages: [...first, user('c'), said('d')],
    additionalHistories: [[user('sub'), said('agent')]],
  });
});

test('prompts that begin afresh stand in the order of play where the record tells it', () => {
  const calls = ['second', 'third', 'first'].map((content) => call([user(content)], said('a move')));
  const told = calls.map((played, index) => ({ ...played, turn: (index + 1) % calls.length }));
  const beginnings = (played: CallRecord[]) => {
    const { messages, additionalHistories = [] } = conversationOf({ attempt: 0, calls: played });
    return [messages, ...additionalHistories].map(([message]) => message?.content);
  };
  expect(beginnings(told)).toEqual(['first', 'second', 'third']);
  expect(beginnings(calls)).toEqual(['second', 'third', 'first']);
});

test('an attempt that asked nothing said nothing', () => {
  expect(conversationOf({ attempt: 0, calls: [] }).messages).toEqual([]);
});

test('distinct attempts have an order of their own', () => {
  const conversations = ['x', 'y', 'x', 'z'].map((text, index) => ({ id: String(index), messages: [user(text)] }));
  const forwards = distinctAttempts(conversations);
  expect(forwards.map(({ ids }) => ids.join())).toEqual(expect.arrayContaining(['0,2', '1', '3']));
  const backwards = distinctAttempts(conversations.toReversed());
  expect(backwards.map(({ sha256 }) => sha256)).toEqual(forwards.map(({ sha256 }) => sha256));
});
