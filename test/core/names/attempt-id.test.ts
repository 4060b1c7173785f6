import { expect, test } from 'vitest';

import {
  formatAttemptId,
  formatGroupId,
  parseAttemptId,
  parseGroupId,
  parseTrainedAttemptId,
} from '../../../core/names/attempt-id.ts';

test('an attempt is named by branch, step, group and its number in the group', () => {
  const place = { branch: 0, step: 3, group: 2, attempt: 5 };
  expect(formatAttemptId(place)).toBe('0.3.2.5');
  expect(parseAttemptId('0.3.2.5')).toEqual(place);
  expect(parseTrainedAttemptId('0.3.2.5')).toEqual(place);
});

test('an attempt of an evaluation is named by branch and step', () => {
  const place = { branch: 0, step: 3, group: null, attempt: 5 };
  expect(formatAttemptId(place)).toBe('eval.0.3.5');
  expect(parseAttemptId('eval.0.3.5')).toEqual(place);
  expect(parseTrainedAttemptId('eval.0.3.5')).toBeNull();
});

test('groups and evaluations are read back as they are written, and nothing else is one', () => {
  for (const id of ['0.3.2', 'eval.1.30', 'eval.0.0']) expect(formatGroupId(parseGroupId(id)!)).toBe(id);
  for (const text of ['', '0.3', 'eval.0', 'eval.0.3.2', '0.3.2.1', '0.03.2', 'replay.0.3.2'])
    expect(parseGroupId(text)).toBeNull();
});

test.each([
  '',
  '0.3.2',
  '0.3.2.5.1',
  '0.0.2.5',
  'replay.0.3.2.5.t1.0a',
  '00.3.2.5',
  '0.3.2.-1',
  '0.3.2.5 ',
  'a.b.c.d',
  '0.3.2.1e3',
  '0.9999999999.0.0',
])('%j names none', (text) => expect(parseTrainedAttemptId(text)).toBeNull());
