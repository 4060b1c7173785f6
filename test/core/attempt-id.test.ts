import { expect, test } from 'vitest';

import { formatAttemptId, parseAttemptId } from '../../core/attempt-id.ts';

test('an attempt is named by branch, step, group and its number in the group', () => {
  const place = { branch: 0, step: 3, group: 2, attempt: 5 };
  expect(formatAttemptId(place)).toBe('0.3.2.5');
  expect(parseAttemptId('0.3.2.5')).toEqual(place);
});

test.each([
  '',
  '0.3.2',
  '0.3.2.5.1',
  '0.0.2.5',
  '00.3.2.5',
  '0.3.2.-1',
  '0.3.2.5 ',
  'a.b.c.d',
  '0.3.2.1e3',
  '0.9999999999.0.0',
])('%j names none', (text) => expect(parseAttemptId(text)).toBeNull());
