import { expect, test } from 'vitest';

import { ReviewQueue, type ReviewQuestion } from '../../../cli/review/questions/review-queue.ts';

const NOW = 1_000_000;
const MINUTE = 60_000;

/** Three questions, and what was answered of them. */
function open(...answers: (readonly string[])[]): ReviewQuestion[] {
  return ['a', 'b', 'c'].map((id, index) => ({ id, answeredBy: answers[index] ?? [] }));
}

const asks = (queue: ReviewQueue, questions: readonly ReviewQuestion[], by: string, reviewers = 1, now = NOW) =>
  queue.next(questions, { by, reviewers, now }).question?.id ?? null;

test('two reviewers at once get different questions, and a reloaded page keeps its own', () => {
  const queue = new ReviewQueue();
  expect(asks(queue, open(), 'ada')).toBe('a');
  expect(asks(queue, open(), 'bob')).toBe('b');
  expect(asks(queue, open(), 'ada')).toBe('a');
  expect(asks(queue, open(['ada']), 'ada')).toBe('c');
});

test('nobody is asked twice, and a question is open until enough reviewers answered', () => {
  const queue = new ReviewQueue();
  const questions = open(['ada'], ['ada', 'bob'], ['ada']);
  expect(asks(queue, questions, 'ada', 2)).toBeNull();
  expect(asks(queue, questions, 'bob', 2)).toBe('a');
  expect(asks(queue, questions, 'cleo', 2)).toBe('c');
  expect(asks(queue, open(['ada'], ['bob'], ['ada']), 'cleo', 1)).toBeNull();
});

test('the last open question is asked of everybody: an answer more does no harm, and nobody waits', () => {
  const queue = new ReviewQueue();
  const questions = open(['ada'], ['ada']);
  expect(asks(queue, questions, 'ada')).toBe('c');
  expect(asks(queue, questions, 'bob')).toBe('c');
});

test('a page that nobody answers gives its question back after a while', () => {
  const queue = new ReviewQueue();
  expect(asks(queue, open(), 'ada')).toBe('a');
  expect(asks(queue, open(), 'bob', 1, NOW + 4 * MINUTE)).toBe('b');
  expect(asks(queue, open(), 'cleo', 1, NOW + 6 * MINUTE)).toBe('a');
});

test('what is skipped is asked of others, and again once the reviewer wants it', () => {
  const queue = new ReviewQueue();
  expect(asks(queue, open(), 'ada')).toBe('a');
  queue.skip('a', 'ada');
  expect(asks(queue, open(), 'ada')).toBe('b');
  queue.skip('b', 'ada');
  queue.skip('c', 'ada');
  expect(queue.next(open(), { by: 'ada', reviewers: 1, now: NOW })).toEqual({
    question: null,
    answered: 0,
    needed: 3,
    skipped: 3,
  });
  expect(asks(queue, open(), 'bob')).toBe('a');
  queue.askAgain('ada');
  expect(asks(queue, open(), 'ada')).toBe('b');
});

test('progress counts the answers that are needed: further ones add nothing', () => {
  const queue = new ReviewQueue();
  const questions = open(['ada', 'bob', 'cleo'], ['ada']);
  expect(queue.next(questions, { by: 'ada', reviewers: 2, now: NOW })).toMatchObject({ answered: 3, needed: 6 });
});
